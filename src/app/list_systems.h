#pragma once

#include "app/commands.h"
#include "house/system.h"

namespace tabella::app {

// `tabella systems`: what there is, with its tables and routes. The exit code.
int list_systems(const SystemsOptions& options, const house::Systems& systems);

}  // namespace tabella::app
