#include "app/systems.h"

#include "mail/system.h"

namespace tabella::app {

house::Systems make_systems() {
  house::Systems systems;
  systems.push_back(mail::make_system());
  return systems;
}

}  // namespace tabella::app
