#pragma once

#include "app/commands.h"

namespace tabella::app {

// Builds mail's search index anew. Returns the exit code.
int reindex(const ReindexOptions& options);

}  // namespace tabella::app
