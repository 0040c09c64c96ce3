#pragma once

#include "app/server_options.h"
#include "mail/options.h"

namespace tabella::app {

// Serves until SIGTERM or SIGINT, then finishes what is under way. Returns the exit code.
int serve(const ServeOptions& options, const mail::Options& mail);

}  // namespace tabella::app
