#pragma once

#include "app/commands.h"

namespace tabella::app {

// Shows emails of the outbox, and steps in: straight in its tables, whether somebody serves them or not.
// Returns the exit code.
int outbox(const OutboxOptions& options);

}  // namespace tabella::app
