// Phone calls and texts by Twilio's REST API; any server that speaks it will do.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "manhunt/channel.h"
#include "net/outbound.h"

namespace tabella::manhunt {

struct TwilioAccount {
  std::string name;  // of the provider
  std::vector<ChannelKind> channels;
  std::string url = "https://api.twilio.com";
  std::string account;
  std::string token;
  std::string from;
  std::chrono::milliseconds timeout{15'000};
};

class Twilio final : public Provider {
 public:
  // `base`: what the addresses of our callbacks begin with.
  Twilio(TwilioAccount account, std::string base, net::Outbound& outbound)
      : account_(std::move(account)), base_(std::move(base)), outbound_(outbound) {}

  std::string_view name() const override { return account_.name; }
  bool serves(ChannelKind kind) const override;
  boost::asio::awaitable<Sent> send(const Message& message) override;

  // Whether a callback is Twilio's: `target` is the path and the query it came to, `form` its body.
  bool is_signed(std::string_view target, std::string_view form, std::string_view signature) const;

 private:
  std::string callback(std::string_view what, const Message& message) const;

  const TwilioAccount account_;
  const std::string base_;
  net::Outbound& outbound_;
};

// TwiML.
std::string call_twiml(const Message& message, std::string_view action);
std::string say_twiml(std::string_view text, std::string_view language);
std::string reply_twiml(std::string_view text);

}  // namespace tabella::manhunt
