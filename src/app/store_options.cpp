#include "app/store_options.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

namespace tabella::app {
namespace {

// What the tables are called begins with it: it must fit into their names.
OptionCheck check_prefix(std::string_view prefix) {
  const bool fits = prefix.size() <= 100 && std::ranges::all_of(prefix, [](unsigned char c) {
                      return std::isalnum(c) || c == '_' || c == '-' || c == '.';
                    });
  if (!fits) return std::unexpected("at most 100 letters, digits, '_', '-' and '.'");
  return {};
}

std::expected<RemoteStoreOptions, std::string> make_remote(const StoreOptions& options) {
  const auto region = options.region.empty() ? remote::default_region(options.profile) : options.region;
  auto endpoint = remote::parse_endpoint(options.place, region);
  if (!endpoint) return std::unexpected(fmt::format("--store: {}", endpoint.error()));
  if (!options.ca_file.empty() && !endpoint->items.tls)
    return std::unexpected("--store-ca: the store is not reached by https");
  const bool aws = endpoint->aws;
  return RemoteStoreOptions{
      .endpoint = std::move(*endpoint),
      .credentials = {.given = options.credentials, .profile = options.profile, .any_will_do = !aws},
      .ca_file = options.ca_file};
}

// Options that say nothing with the store that was chosen are mistakes, not noise.
OptionCheck check_store(StoreOptions& options, const OptionSources& given) {
  if (options.place == "embedded")
    return refuse_given(given,
                        {"--aws-region", "--aws-profile", "--aws-access-key-id", "--aws-secret-access-key",
                         "--aws-session-token", "--store-ca"},
                        "is for a --store that is somewhere else");
  if (const auto none = refuse_given(given, {"--data"}, "is for the embedded store"); !none) return none;
  if (const auto both = go_together(given, "--aws-access-key-id", "--aws-secret-access-key"); !both)
    return both;
  if (given.contains("--aws-session-token") && !given.contains("--aws-access-key-id"))
    return std::unexpected("--aws-session-token: goes with --aws-access-key-id and --aws-secret-access-key");
  auto remote = make_remote(options);
  if (!remote) return std::unexpected(std::move(remote.error()));
  options.remote = std::move(*remote);
  return {};
}

}  // namespace

Option table_prefix_option(std::string& into) {
  return {"--table-prefix", text_option(into, "TEXT", check_prefix),
          "What the names of our own tables begin with"};
}

OptionGroup store_table(StoreOptions& options) {
  const auto credential = [&](std::string remote::Credentials::* part, std::string placeholder) {
    return part_option(options.credentials, part, std::move(placeholder));
  };
  return {
      .title = "Store",
      .options =
          {{"--store", text_option(options.place, "STORE"),
            "Where the tables are: embedded, in --data; dynamodb://REGION, on AWS; or http(s)://HOST:PORT, "
            "any other DynamoDB, such as ScyllaDB's Alternator or another Tabella. With a store that is not "
            "embedded no DynamoDB API is served"},
           {"--data", path_option(options.data, "DIR"), "Folder for the data; made if it is not there"},
           table_prefix_option(options.table_prefix),
           {"--aws-region", text_option(options.region, "REGION"),
            "Region to sign for, where --store does not name it"},
           {"--aws-profile", text_option(options.profile, "NAME"), "Profile of the shared AWS files"},
           {"--aws-access-key-id", credential(&remote::Credentials::access_key, "ID"),
            "Credentials for the store. Without them they are looked for in AWS_* variables, ~/.aws, and the "
            "endpoints of the container and the instance"},
           {.flags = "--aws-secret-access-key",
            .value = credential(&remote::Credentials::secret_key, "SECRET"),
            .help = "The secret of that key; better in the environment",
            .secret = true},
           {.flags = "--aws-session-token",
            .value = credential(&remote::Credentials::session_token, "TOKEN"),
            .help = "Its session token, if it has one",
            .secret = true},
           {"--store-ca", text_option(options.ca_file, "FILE"),
            "Certificates (PEM) to trust for the store, instead of the system's"}},
      .check = [&options](const OptionSources& given) { return check_store(options, given); }};
}

}  // namespace tabella::app
