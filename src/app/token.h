// `tabella token create|list|revoke`.
#pragma once

#include "app/commands.h"

namespace tabella::app {

// What was asked for goes to standard output, the secret of a new token alone, so that a script can keep it;
// what there is to say about it goes to standard error. Returns the exit code.
int token(const TokenOptions& options);

}  // namespace tabella::app
