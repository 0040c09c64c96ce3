// The systems of the program of this example: mail, and one more line.
#include "app/systems.h"

#include "mail/system.h"
#include "reminders/reminders.h"

namespace tabella::app {

house::Systems make_systems() {
  house::Systems systems;
  systems.push_back(mail::make_system());
  systems.push_back(reminders::make_system());
  return systems;
}

}  // namespace tabella::app
