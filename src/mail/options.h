// What mail can be told by whoever starts the process.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/options.h"
#include "mail/id.h"
#include "mail/jim.h"
#include "net/transport.h"

namespace tabella::mail {

struct Options {
  std::optional<Address> smtp = Address{"127.0.0.1", 1025};
  std::optional<Address> smtps;
  std::optional<net::TlsFiles> tls;
  bool require_tls = false;
  std::string auth_file;
  size_t max_message = 50u << 20;
  size_t max_recipients = 100;
  size_t max_connections = 1000;
  std::chrono::seconds time_to_live{7 * 24 * 3600};
  Granularity granularity = Granularity::day;
  size_t most_messages = 0;                         // 0: as many as there are
  std::optional<std::chrono::milliseconds> settle;  // nothing: as the store needs it
  std::string outgoing_file;
  std::vector<std::string> webhooks;
  std::string webhook_secret;
  bool invite_jim = false;
  Chances chances;
};

OptionGroup option_table(Options& options);

}  // namespace tabella::mail
