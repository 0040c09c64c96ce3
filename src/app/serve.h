#pragma once

#include "app/server_options.h"
#include "house/system.h"

namespace tabella::app {

// Serves the systems that the options name until it is told to stop (SIGTERM, SIGINT), whatever the store.
// The exit code.
int serve(const ServeOptions& options, house::Systems systems);

}  // namespace tabella::app
