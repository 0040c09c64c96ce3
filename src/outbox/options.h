// What the outbox can be told by whoever starts the process.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/options.h"
#include "net/transport.h"
#include "outbox/dispatcher.h"
#include "outbox/route.h"

namespace tabella::outbox {

struct Options {
  // Where emails are kept.
  std::string table = "tabella-outbox";
  std::string database;  // mysql://…; empty: in the store
  std::string folder;
  std::chrono::seconds time_to_live = std::chrono::days{30};

  // Delivery.
  Mode mode = Mode::capture;
  std::string relay;
  std::vector<std::string> routes;
  smtp::Security tls = smtp::Security::opportunistic;
  std::string ca_file;
  std::vector<std::string> dns_servers;
  size_t direct_port = 25;
  std::vector<std::string> dkim;  // DOMAIN:SELECTOR:FILE
  size_t concurrency = 16;
  std::vector<std::string> rates;  // DOMAIN=N
  std::chrono::milliseconds retry_first{60'000};
  std::chrono::milliseconds retry_longest = std::chrono::hours{4};
  std::chrono::milliseconds give_up = std::chrono::days{4};
  std::chrono::milliseconds timeout = std::chrono::minutes{5};
  IfUnknown if_unknown = IfUnknown::repeat;
  std::chrono::milliseconds lease{60'000};
  std::chrono::milliseconds stale = std::chrono::minutes{30};

  // Callbacks and bounces.
  std::string callback;
  std::string callback_secret;
  std::string bounce_domain;
  std::optional<Address> bounces;

  // Submission.
  std::optional<Address> submission;
  std::optional<net::TlsFiles> tls_files;
  std::string auth_file;
  size_t max_size = 40u << 20;
};

OptionGroup option_table(Options& options);

// Of options that have been checked.
Routes routes_of(const Options& options);
std::map<std::string, double> rates_of(const Options& options);

}  // namespace tabella::outbox
