#pragma once

#include "app/options.h"

namespace tabella::app {

// Serves until SIGTERM or SIGINT, then finishes what is under way. Returns the exit code.
int serve(const ServeOptions& options);

}  // namespace tabella::app
