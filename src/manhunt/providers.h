// Who takes messages to people: as a file says, or as there is without one — phones and texts are simulated,
// emails go by the outbox, webhooks are called.
#pragma once

#include <expected>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "manhunt/channel.h"
#include "manhunt/domains.h"
#include "net/outbound.h"
#include "store/store.h"

namespace tabella::manhunt {

class HttpProvider;
class Twilio;

// Takes an email for good, as POST /outbox/emails takes it; one whose id it has had is taken once. An error
// of the kind validation will not pass.
using SendEmail = std::function<store::Async<void>(std::string json)>;

// What they need. All of it outlives them.
struct ProviderParts {
  net::Outbound& outbound;
  const Clock& clock;
  Domains& domains;
  SendEmail send_email;  // empty: nobody does
  std::string email_from;
  std::string base;  // what the addresses of our callbacks begin with
};

// In the order in which they are tried. `json` is the file's text; empty: there is none. An error is a
// sentence for the user.
std::expected<Providers, std::string> make_providers(const std::string& json, const ProviderParts& parts);

// The provider of that name, if it is one of Twilio's.
const Twilio* find_twilio(const Providers& providers, std::string_view name);
// The same of those that templates describe.
const HttpProvider* find_http_provider(const Providers& providers, std::string_view name);

}  // namespace tabella::manhunt
