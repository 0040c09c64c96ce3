// Mail as a system of the process: its parts, its ports, its background, put together.
#pragma once

#include <memory>

#include "house/system.h"

namespace tabella::mail {

std::unique_ptr<house::System> make_system();

}  // namespace tabella::mail
