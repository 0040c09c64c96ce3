// The outbox as a system of the process: its parts, its ports, its background, put together.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "house/system.h"
#include "outbox/carrier.h"
#include "store/store.h"

namespace tabella::outbox {

// How other systems of the process send emails: as POST /outbox/emails takes one. Filled in when the outbox
// starts; empty where there is none. Takes from any thread.
struct Handover {
  std::function<store::Async<void>(std::string json)> send;
};

// `capture` says, once all systems before this one are started, who takes mail that goes nowhere else; an
// empty one if nobody does.
std::unique_ptr<house::System> make_system(std::function<Capture()> capture,
                                           std::shared_ptr<Handover> handover = nullptr);

}  // namespace tabella::outbox
