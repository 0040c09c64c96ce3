// Jim, the chaos monkey: MailHog's chances, and scenarios that play the same each time.
#pragma once

#include <cstdint>
#include <deque>
#include <expected>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "smtp/server.h"
#include "smtp/session.h"

namespace tabella::mail {

// As MailHog has them.
struct Chances {
  double disconnect = 0.005;
  double accept = 0.99;
  double link_speed_affect = 0.1;
  double link_speed_min = 1024;  // bytes a second
  double link_speed_max = 10240;
  double reject_sender = 0.05;
  double reject_recipient = 0.05;
  double reject_auth = 0.05;
};

// One thing that happens so many times to what fits it.
struct Step {
  enum class At { connect, login, sender, recipient, message };
  At at = At::recipient;
  std::string from, to;  // parts of the addresses it is for; empty: any
  std::optional<smtp::Reply> reply;
  bool disconnect = false;
  int64_t times = 1;  // 0: always
  double chance = 1;
};

struct Scenario {
  uint64_t seed = 1;
  std::vector<Step> steps;
};

// Thread-safe.
class Jim {
 public:
  // MailHog's side: invited or not.
  std::optional<Chances> chances() const;
  bool invite(std::optional<Chances> chances);  // false: he is here already
  bool change(Chances chances);                 // false: he is not here
  bool send_away();
  void set_defaults(Chances chances);

  // A scenario begins anew, with its first step and its seed; nothing: there is none any more.
  void play(std::optional<Scenario> scenario);
  // What is left of it and what has happened, as JSON; nothing: there is none.
  std::optional<std::string> scenario_json() const;

  // What he does to a session. All of one session with the chances that it began with.
  bool refuses_connection(const std::optional<Chances>& chances);
  bool disconnects(const std::optional<Chances>& chances);
  smtp::LinkSpeed link_speed(const std::optional<Chances>& chances);
  std::optional<smtp::Reply> refuses(Step::At at, const std::optional<Chances>& chances,
                                     const std::string& from, const std::vector<std::string>& to);

 private:
  struct Playing {
    Scenario scenario;
    std::vector<int64_t> left;  // of each step
    std::mt19937_64 random;
    std::deque<std::string> happened;
  };
  const Step* next_step(Step::At at, const std::string& from, const std::vector<std::string>& to);
  bool happens(double chance);
  double random();

  mutable std::mutex mutex_;  // guards all
  std::optional<Chances> here_;
  Chances last_;
  std::mt19937_64 random_{std::random_device{}()};
  std::optional<Playing> playing_;
};

std::string to_json(const Chances& chances);
// Members that are not there are 0, as MailHog has it. Nothing if it is no object of numbers.
std::optional<Chances> chances_from_json(std::string_view json);
// A sentence if it cannot be understood.
std::expected<Scenario, std::string> scenario_from_json(std::string_view json);

// A member of an object, whatever the case of its name, as Go finds them.
std::optional<JsonValue> find_any_case(JsonValue object, std::string_view name);

}  // namespace tabella::mail
