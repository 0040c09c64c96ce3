#pragma once

#include "app/commands.h"

namespace tabella::app {

// Shows the searches that a server carries on, and the simulator's phones, which can be answered. Returns the
// exit code.
int manhunt_watch(const ManhuntWatchOptions& options);

}  // namespace tabella::app
