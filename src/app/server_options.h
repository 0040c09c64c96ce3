// What `tabella serve` can be told besides what its systems can be told.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/store_options.h"
#include "base/log.h"
#include "base/options.h"
#include "engine/database.h"
#include "net/transport.h"

namespace tabella::app {

struct ServeOptions {
  StoreOptions store;
  bool create_tables = false;  // on the embedded engine they are made in any case

  // The DynamoDB API.
  Address dynamodb{"127.0.0.1", 8000};
  std::optional<net::TlsFiles> tls;
  std::map<std::string, std::string, std::less<>> access_keys;  // id, secret
  engine::Durability durability = engine::Durability::sync;
  std::optional<size_t> min_free;  // bytes
  bool show_system_tables = false;

  // Everything else over HTTP.
  std::optional<Address> http = Address{"127.0.0.1", 8025};
  std::optional<net::TlsFiles> http_tls;
  std::string web_path;
  std::string cors_origin;
  std::vector<std::string> allowed_hosts;
  std::string auth_file;

  // What we send to others.
  std::vector<std::string> outbound_allowed;  // host names, addresses, networks
  std::string outbound_proxy;                 // http://HOST:PORT; empty: none

  // The process.
  std::vector<std::string> systems;  // by name
  std::string hostname = "tabella.local";
  std::filesystem::path secret_key_file;  // empty: in the data folder
  size_t threads = 0;                     // at least 1 once it is checked
  size_t memory = 512u << 20;             // for requests and answers
  std::chrono::milliseconds stop_timeout{10'000};
  std::string log_level = "info";
  log::Format log_format = log::Format::text;
};

// One table for each of its parts; `systems` are the names of all that there are.
std::vector<OptionGroup> server_tables(ServeOptions& options, const std::vector<std::string>& systems);

}  // namespace tabella::app
