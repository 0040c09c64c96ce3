#include "app/systems.h"

#include "inbox/system.h"
#include "journal/system.h"
#include "mail/system.h"
#include "manhunt/system.h"
#include "outbox/system.h"

namespace tabella::app {

house::Systems make_systems() {
  house::Systems systems;
  // Where nothing else is said the outbox delivers into mail. Stopped in the same order: the outbox ends what
  // it is at before mail is gone.
  auto mail = std::make_shared<mail::Handover>();
  systems.push_back(mail::make_system(mail));
  auto outbox = std::make_shared<outbox::Handover>();
  systems.push_back(outbox::make_system([mail] { return mail->take; }, outbox));
  // The inbox and manhunt send their emails by the outbox.
  systems.push_back(inbox::make_system([outbox] { return outbox->send; }));
  systems.push_back(manhunt::make_system([outbox] { return outbox->send; }));
  systems.push_back(journal::make_system());
  return systems;
}

}  // namespace tabella::app
