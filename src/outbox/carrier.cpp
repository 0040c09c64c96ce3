#include "outbox/carrier.h"

#include <algorithm>
#include <random>

#include <fmt/format.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/ids.h"
#include "base/log.h"
#include "net/by_value.h"

namespace tabella::outbox {

namespace asio = boost::asio;
using asio::awaitable;
using smtp::Outcome;

namespace {

// As many servers of a domain as are tried in one attempt, and groups that are carried at once.
constexpr size_t kMostServers = 5;
constexpr size_t kMostGroupsAtOnce = 8;

Outcome outcome(Outcome::Kind kind, int code, std::string enhanced, std::string reply) {
  return {.kind = kind,
          .step = Outcome::Step::connect,
          .code = code,
          .enhanced = std::move(enhanced),
          .reply = std::move(reply)};
}

bool is_worth_another_server(const smtp::Delivery& delivery) {
  return std::ranges::all_of(delivery.recipients, [](const Outcome& each) {
    return each.kind == Outcome::Kind::deferred && each.step <= Outcome::Step::login;
  });
}

}  // namespace

// One call of carry().
struct Carrier::Job {
  std::string from;
  std::vector<std::string> addresses;
  std::shared_ptr<const std::string> content;
  std::vector<Carried> carried;

  void settle(const Group& group, const Outcome& same_for_all, const std::string& host) {
    for (const auto member : group.members) carried[member] = {same_for_all, host};
  }
};

Carrier::Carrier(asio::any_io_executor executor, CarrierOptions options, Capture capture,
                 const net::AddressRules& rules)
    : executor_(std::move(executor)),
      options_(std::move(options)),
      capture_(std::move(capture)),
      rules_(rules),
      trust_(options_.ca_file),
      pool_(executor_, trust_, {.timeouts = options_.timeouts, .max_idle_per_destination = 32}),
      dns_(executor_, {.servers = options_.dns_servers}) {}

std::string Carrier::destination_of(const std::string& domain) const {
  const auto& route = options_.routes.find(domain);
  switch (route.mode) {
    case Mode::capture: return "capture";
    case Mode::relay: return fmt::format("{}:{}", route.relay.host, route.relay.port);
    case Mode::direct: return domain;
  }
  return domain;
}

std::vector<Carrier::Group> Carrier::group(const std::vector<std::string>& addresses) const {
  std::vector<Group> groups;
  for (size_t i = 0; i < addresses.size(); ++i) {
    auto domain = domain_of(addresses[i]);
    const auto* route = &options_.routes.find(domain);
    if (route->mode != Mode::direct) domain.clear();
    const auto same = [&](const Group& group) { return group.route == route && group.domain == domain; };
    auto found = std::ranges::find_if(groups, same);
    if (found == groups.end()) {
      groups.push_back({.route = route, .domain = std::move(domain), .members = {}});
      found = std::prev(groups.end());
    }
    found->members.push_back(i);
  }
  return groups;
}

awaitable<std::vector<Carried>> Carrier::carry(std::string from, std::vector<std::string> addresses,
                                               std::shared_ptr<const std::string> content) {
  Job job{.from = std::move(from),
          .addresses = std::move(addresses),
          .content = std::move(content),
          .carried = {}};
  job.carried.resize(job.addresses.size());
  const auto groups = group(job.addresses);
  if (groups.size() == 1) {
    co_await carry_group(job, groups.front());
    co_return std::move(job.carried);
  }
  // Several at once; all have ended before this does.
  size_t begun = 0;
  size_t ended = 0;
  asio::steady_timer changed(executor_, asio::steady_timer::time_point::max());
  while (ended < groups.size()) {
    while (begun < groups.size() && begun - ended < kMostGroupsAtOnce)
      asio::co_spawn(executor_, carry_group(job, groups[begun++]), [&](const std::exception_ptr&) {
        ++ended;
        changed.cancel();
      });
    if (ended < begun) co_await changed.async_wait(net::kByValue);
  }
  co_return std::move(job.carried);
}

awaitable<void> Carrier::carry_group(Job& job, const Group& group) {
  try {
    switch (group.route->mode) {
      case Mode::capture: co_return co_await capture(job, group);
      case Mode::relay: {
        auto relay = group.route->relay;
        relay.helo = options_.hostname;
        co_await deliver(job, group, std::move(relay));
        co_return;
      }
      case Mode::direct: co_return co_await deliver_direct(job, group);
    }
  } catch (const std::exception& error) {
    log::error("an email was not carried: {}", error.what());
    job.settle(group, outcome(Outcome::Kind::unknown, 0, "4.3.0", "an error of our own while it was sent"),
               "");
  }
}

awaitable<void> Carrier::capture(Job& job, const Group& group) {
  smtp::Envelope envelope{
      .peer = "127.0.0.1", .helo = options_.hostname, .from = job.from, .data = *job.content};
  for (const auto member : group.members) envelope.to.push_back(job.addresses[member]);
  const auto taken = co_await capture_(std::move(envelope));
  auto said = taken ? outcome(Outcome::Kind::delivered, 250, "2.0.0", "captured as " + *taken)
                    : outcome(taken.error().unsure ? Outcome::Kind::unknown : Outcome::Kind::deferred, 451,
                              "4.3.0", "not captured: " + taken.error().message);
  said.step = Outcome::Step::content;
  job.settle(group, said, "capture");
}

// False: another server of the domain may do better.
awaitable<bool> Carrier::deliver(Job& job, const Group& group, smtp::Destination destination) {
  const auto host = destination.host;
  smtp::Letter letter{.from = job.from, .to = {}, .data = *job.content};
  for (const auto member : group.members) letter.to.push_back(job.addresses[member]);
  auto delivery = co_await pool_.deliver(std::move(destination), std::move(letter));
  const bool settled = !is_worth_another_server(delivery);
  for (size_t i = 0; i < group.members.size(); ++i)
    job.carried[group.members[i]] = {std::move(delivery.recipients[i]), host};
  co_return settled;
}

awaitable<std::expected<std::vector<std::string>, Outcome>> Carrier::servers_of(std::string domain) {
  // An address literal: user@[192.0.2.1].
  if (domain.starts_with('[')) co_return std::vector{domain.substr(1, domain.size() - 2)};
  auto found = co_await dns_.mx(domain);
  if (!found && found.error().kind == net::DnsError::Kind::temporary)
    co_return std::unexpected(
        outcome(Outcome::Kind::deferred, 451, "4.4.3",
                fmt::format("the servers of {} cannot be looked up: {}", domain, found.error().message)));
  // Without MX the domain itself is asked for addresses (RFC 5321, 5.1).
  if (!found || found->empty()) co_return std::vector{domain};
  if (found->size() == 1 && found->front().is_null())
    co_return std::unexpected(
        outcome(Outcome::Kind::refused, 556, "5.1.10", domain + " takes no mail (null MX)"));
  // Those of one preference in any order.
  std::ranges::shuffle(*found, std::mt19937_64(random_bits()));
  std::ranges::sort(*found, {}, &net::Mx::preference);
  std::vector<std::string> hosts;
  for (const auto& mx : *found) hosts.push_back(mx.host);
  if (hosts.size() > kMostServers) hosts.resize(kMostServers);
  co_return hosts;
}

awaitable<std::expected<smtp::Destination, Outcome>> Carrier::locate(std::string host) {
  smtp::Destination destination{.host = host,
                                .port = options_.direct_port,
                                .security = options_.direct_security,
                                .check_certificate = options_.direct_security == smtp::Security::required,
                                .helo = options_.hostname};
  std::vector<asio::ip::tcp::endpoint> endpoints;
  if (const auto literal = net::literal_address(host)) {
    endpoints.emplace_back(*literal, options_.direct_port);
  } else {
    const auto addresses = co_await dns_.addresses(host);
    if (!addresses) {
      const bool later = addresses.error().kind == net::DnsError::Kind::temporary;
      co_return std::unexpected(
          later ? outcome(Outcome::Kind::deferred, 451, "4.4.3",
                          fmt::format("{} cannot be looked up: {}", host, addresses.error().message))
                : outcome(Outcome::Kind::refused, 550, "5.1.2", host + " does not exist"));
    }
    for (const auto& address : *addresses) endpoints.emplace_back(address, options_.direct_port);
  }
  auto permitted = rules_.permitted(host, std::move(endpoints));
  if (!permitted) co_return std::unexpected(outcome(Outcome::Kind::refused, 550, "5.7.1", permitted.error()));
  destination.endpoints = std::move(*permitted);
  co_return destination;
}

awaitable<void> Carrier::deliver_direct(Job& job, const Group& group) {
  const auto servers = co_await servers_of(group.domain);
  if (!servers) co_return job.settle(group, servers.error(), "");
  // That one of them may be reached later goes before that another does not exist.
  bool reached = false;
  for (const auto& server : *servers) {
    auto destination = co_await locate(server);
    if (destination) {
      if (co_await deliver(job, group, std::move(*destination))) co_return;
      reached = true;
    } else if (!reached) {
      job.settle(group, destination.error(), server);
      reached = destination.error().kind == Outcome::Kind::deferred;
    }
  }
}

}  // namespace tabella::outbox
