// The journal as a system of the process: its parts and its background, put together.
#pragma once

#include <memory>

#include "house/system.h"

namespace tabella::journal {

std::unique_ptr<house::System> make_system();

}  // namespace tabella::journal
