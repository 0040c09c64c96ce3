// The outbox as a system of the process: its parts, its ports, its background, put together.
#pragma once

#include <functional>
#include <memory>

#include "house/system.h"
#include "outbox/carrier.h"

namespace tabella::outbox {

// `capture` says, once all systems before this one are started, who takes mail that goes nowhere else; an
// empty one if nobody does.
std::unique_ptr<house::System> make_system(std::function<Capture()> capture);

}  // namespace tabella::outbox
