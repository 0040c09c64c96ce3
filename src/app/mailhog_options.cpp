#include "app/mailhog_options.h"

#include <memory>

#include <fmt/format.h>

namespace tabella::app {
namespace {

constexpr std::string_view kWhereMessagesAre = "messages are kept in --data, or in a DynamoDB with --store";

struct GivenToMailHog {
  std::optional<Address> api;
  std::optional<Address> ui;
  std::string storage;
  std::string elsewhere;  // what says where its storage is
};

OptionCheck check_storage(std::string_view text) {
  if (text.empty() || text == "memory") return {};
  return std::unexpected(fmt::format("'{}' is not known here; {}", text, kWhereMessagesAre));
}

// Its page and its API are on two ports; ours are on that of --http, which weighs more.
OptionCheck check_mailhog(const GivenToMailHog& mailhog, OptionSources& given, ServeOptions& options) {
  const auto api = given.find("--api-bind-addr");
  const auto ui = given.find("--ui-bind-addr");
  if (api != given.end() && ui != given.end() && mailhog.api != mailhog.ui)
    return std::unexpected(
        "--api-bind-addr and --ui-bind-addr: here both are on one port; give one, or --http");
  if (!mailhog.elsewhere.empty())
    return std::unexpected(
        fmt::format("--maildir-path, --mongo-… and --api-host mean nothing here: {}", kWhereMessagesAre));
  if (given.contains("--http")) return {};
  if (ui != given.end()) {
    options.http = mailhog.ui;
    given["--http"] = ui->second;
  } else if (api != given.end()) {
    options.http = mailhog.api;
    given["--http"] = api->second;
  }
  return {};
}

}  // namespace

OptionGroup mailhog_table(ServeOptions& options) {
  const auto mailhog = std::make_shared<GivenToMailHog>();  // as long as the table is there
  OptionGroup group{.title = "MailHog", .check = [mailhog, &options](OptionSources& given) {
                      return check_mailhog(*mailhog, given, options);
                    }};
  const auto add = [&](std::string flag, OptionValue value, std::vector<std::string> variables) {
    group.options.push_back({.flags = std::move(flag),
                             .value = std::move(value),
                             .variables = std::move(variables),
                             .hidden = true});
  };
  add("--api-bind-addr", address_option(mailhog->api), {"MH_API_BIND_ADDR"});
  add("--ui-bind-addr", address_option(mailhog->ui), {"MH_UI_BIND_ADDR"});
  add("--storage", text_option(mailhog->storage, "NAME", check_storage), {"MH_STORAGE"});
  const auto elsewhere = [&] { return text_option(mailhog->elsewhere, "PLACE"); };
  add("--maildir-path", elsewhere(), {"MH_MAILDIR_PATH"});
  add("--mongo-uri", elsewhere(), {"MH_MONGO_URI"});
  add("--mongo-db", elsewhere(), {"MH_MONGO_DB"});
  add("--mongo-coll", elsewhere(), {"MH_MONGO_COLLECTION"});
  add("--api-host", elsewhere(), {});
  return group;
}

}  // namespace tabella::app
