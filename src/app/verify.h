#pragma once

#include "app/commands.h"

namespace tabella::app {

// Says what is in a store and what is wrong with it. Returns 0 if nothing is, 1 if something is.
int verify(const VerifyOptions& options);

}  // namespace tabella::app
