#include "mail/jim.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "mime/fold.h"
#include "mime/utf8.h"
#include "net/http.h"

namespace tabella::mail {

using At = Step::At;

namespace {

struct NamedChance {
  std::string_view name;
  double Chances::* member;
};
constexpr auto kChances = std::to_array<NamedChance>({{"DisconnectChance", &Chances::disconnect},
                                                      {"AcceptChance", &Chances::accept},
                                                      {"LinkSpeedAffect", &Chances::link_speed_affect},
                                                      {"LinkSpeedMin", &Chances::link_speed_min},
                                                      {"LinkSpeedMax", &Chances::link_speed_max},
                                                      {"RejectSenderChance", &Chances::reject_sender},
                                                      {"RejectRecipientChance", &Chances::reject_recipient},
                                                      {"RejectAuthChance", &Chances::reject_auth}});

struct NamedStage {
  std::string_view name;
  At at;
};
constexpr auto kStages = std::to_array<NamedStage>({{"connect", At::connect},
                                                    {"login", At::login},
                                                    {"sender", At::sender},
                                                    {"recipient", At::recipient},
                                                    {"message", At::message}});
std::string_view name_of(At at) { return std::ranges::find(kStages, at, &NamedStage::at)->name; }

constexpr size_t kRemembered = 1000;
constexpr size_t kMostSteps = 1000;

bool has_part(const std::string& address, const std::string& part) {
  return part.empty() || mime::fold(address).find(mime::fold(part)) != std::string::npos;
}

// "454 4.7.0 Try again later"
std::optional<smtp::Reply> parse_reply(std::string_view text) {
  int code = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + std::min<size_t>(text.size(), 3), code);
  const bool fits = text.size() >= 3 && error == std::errc{} && end == text.data() + 3 && code >= 400 &&
                    code < 600 && (text.size() == 3 || text[3] == ' ');
  if (!fits || text.size() > 500) return std::nullopt;
  if (std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20; }))
    return std::nullopt;
  return smtp::Reply{.code = code, .text = std::string(text.substr(std::min<size_t>(4, text.size())))};
}

std::expected<Step, std::string> read_step(JsonValue json, size_t number) {
  const auto wrong = [&](std::string_view what) {
    return std::unexpected(fmt::format("step {}: {}", number, what));
  };
  if (!json.is_object()) return wrong("expected an object");
  Step step;
  for (JsonElements members(json); members.next();) {
    static constexpr std::array<std::string_view, 7> kKnown = {"at",         "from",  "to",    "reply",
                                                               "disconnect", "times", "chance"};
    if (std::ranges::find(kKnown, members.key()) == kKnown.end())
      return wrong(fmt::format(
          "'{}' is not known; there is at, from, to, reply, disconnect, times and chance", members.key()));
  }
  if (const auto at = json.text("at"); !at.empty()) {
    const auto* stage = std::ranges::find(kStages, at, &NamedStage::name);
    if (stage == kStages.end()) return wrong("at is one of connect, login, sender, recipient, message");
    step.at = stage->at;
  }
  step.from = json.text("from");
  step.to = json.text("to");
  if (!step.to.empty() && step.at != At::recipient && step.at != At::message)
    return wrong("to is known only at recipient and message");
  if (json.find("reply")) {
    step.reply = parse_reply(json.text("reply"));
    if (!step.reply)
      return wrong("reply is a code from 400 to 599 and a text, as in \"454 4.7.0 Try again\"");
  }
  if (step.reply && step.at == At::connect)
    return wrong("at connect there is only disconnect: nothing is said yet");
  if (const auto disconnect = json.find("disconnect")) {
    if (disconnect->kind() != JsonValue::Kind::boolean) return wrong("disconnect is true or false");
    step.disconnect = disconnect->boolean();
  }
  if (const auto times = json.find("times")) {
    if (times->kind() != JsonValue::Kind::integer || times->integer() < 0)
      return wrong("times is a number; 0: always");
    step.times = times->integer();
  }
  if (const auto chance = json.find("chance")) {
    if (!chance->is_number() || chance->real() < 0 || chance->real() > 1)
      return wrong("chance is between 0 and 1");
    step.chance = chance->real();
  }
  // Without either it says: let this many through.
  return step;
}

}  // namespace

std::optional<JsonValue> find_any_case(JsonValue object, std::string_view name) {
  if (!object.is_object()) return std::nullopt;
  for (JsonElements members(object); members.next();)
    if (net::same_header(members.key(), name) && members.value().kind() != JsonValue::Kind::null)
      return members.value();
  return std::nullopt;
}

std::string to_json(const Chances& chances) {
  std::string json;
  {
    JsonObjectWriter object(json);
    for (const auto& [name, member] : kChances) object.number(name, chances.*member);
  }
  return json;
}

std::optional<Chances> chances_from_json(std::string_view text) {
  JsonDocument document;
  const auto json = document.parse(text);
  if (!json || !json->is_object()) return std::nullopt;
  Chances chances;
  for (const auto& [name, member] : kChances) {
    const auto value = find_any_case(*json, name);
    if (value && !value->is_number()) return std::nullopt;
    chances.*member = value ? value->real() : 0;
  }
  return chances;
}

std::expected<Scenario, std::string> scenario_from_json(std::string_view text) {
  JsonDocument document;
  const auto json = document.parse(text);
  if (!json || !json->is_object())
    return std::unexpected(
        "expected {\"seed\": 1, \"steps\": [{\"to\": \"@example.com\", \"reply\": \"454 4.7.0 Try again\", "
        "\"times\": 3}]}");
  Scenario scenario;
  if (const auto seed = json->find("seed")) {
    if (seed->kind() != JsonValue::Kind::integer) return std::unexpected("seed is a number");
    scenario.seed = static_cast<uint64_t>(seed->integer());
  }
  const auto steps = json->find("steps");
  if (!steps || steps->kind() != JsonValue::Kind::array) return std::unexpected("steps is a list");
  for (JsonElements elements(*steps); elements.next();) {
    if (scenario.steps.size() >= kMostSteps)
      return std::unexpected(fmt::format("more than {} steps", kMostSteps));
    auto step = read_step(elements.value(), scenario.steps.size() + 1);
    if (!step) return std::unexpected(std::move(step).error());
    scenario.steps.push_back(std::move(*step));
  }
  return scenario;
}

std::optional<Chances> Jim::chances() const {
  const std::lock_guard lock(mutex_);
  return here_;
}

void Jim::set_defaults(Chances chances) {
  const std::lock_guard lock(mutex_);
  last_ = chances;
}

bool Jim::invite(std::optional<Chances> chances) {
  const std::lock_guard lock(mutex_);
  if (here_) return false;
  if (chances) last_ = *chances;
  here_ = last_;
  return true;
}

bool Jim::change(Chances chances) {
  const std::lock_guard lock(mutex_);
  if (!here_) return false;
  here_ = last_ = chances;
  return true;
}

bool Jim::send_away() {
  const std::lock_guard lock(mutex_);
  return std::exchange(here_, std::nullopt).has_value();
}

void Jim::play(std::optional<Scenario> scenario) {
  const std::lock_guard lock(mutex_);
  playing_.reset();
  if (!scenario) return;
  auto& playing = playing_.emplace();
  playing.random.seed(scenario->seed);
  for (const auto& step : scenario->steps) playing.left.push_back(step.times);
  playing.scenario = std::move(*scenario);
}

std::optional<std::string> Jim::scenario_json() const {
  const std::lock_guard lock(mutex_);
  if (!playing_) return std::nullopt;
  std::string json;
  {
    JsonObjectWriter object(json);
    object.number("seed", static_cast<int64_t>(playing_->scenario.seed));
    {
      JsonArrayWriter steps(object.key("steps"));
      for (size_t i = 0; i < playing_->left.size(); ++i) {
        const auto& step = playing_->scenario.steps[i];
        JsonObjectWriter one(steps.element());
        one.string("at", name_of(step.at));
        if (!step.from.empty()) one.string("from", step.from);
        if (!step.to.empty()) one.string("to", step.to);
        if (step.reply) one.string("reply", fmt::format("{} {}", step.reply->code, step.reply->text));
        if (step.disconnect) one.boolean("disconnect", true);
        one.number("times", step.times);
        one.number("chance", step.chance);
        if (step.times > 0) one.number("left", playing_->left[i]);
      }
    }
    JsonArrayWriter happened(object.key("happened"));
    for (const auto& line : playing_->happened)
      append_json_string(happened.element(), mime::to_valid_utf8(line));
  }
  return json;
}

double Jim::random() { return std::uniform_real_distribution<double>(0, 1)(random_); }
bool Jim::happens(double chance) { return random() < chance; }

// The step that is to happen now, counted; null if none is.
const Step* Jim::next_step(At at, const std::string& from, const std::vector<std::string>& to) {
  if (!playing_) return nullptr;
  for (size_t i = 0; i < playing_->left.size(); ++i) {
    const auto& step = playing_->scenario.steps[i];
    const bool over = step.times > 0 && playing_->left[i] == 0;
    const bool fits = step.at == at && has_part(from, step.from) &&
                      (step.to.empty() || std::ranges::any_of(to, [&](const auto& address) {
                         return has_part(address, step.to);
                       }));
    if (over || !fits) continue;
    if (step.chance < 1 && std::uniform_real_distribution<double>(0, 1)(playing_->random) >= step.chance)
      continue;
    if (step.times > 0) --playing_->left[i];
    const auto outcome = step.reply        ? fmt::format("{} {}", step.reply->code, step.reply->text)
                         : step.disconnect ? "disconnected"
                                           : "let through";
    playing_->happened.push_back(
        fmt::format("{} {} -> {}: {}", name_of(at), from, fmt::join(to, ", "), outcome));
    if (playing_->happened.size() > kRemembered) playing_->happened.pop_front();
    return &step;
  }
  return nullptr;
}

bool Jim::refuses_connection(const std::optional<Chances>& chances) {
  const std::lock_guard lock(mutex_);
  if (const auto* step = next_step(At::connect, "", {})) return step->disconnect;
  return chances && random() > chances->accept;
}

bool Jim::disconnects(const std::optional<Chances>& chances) {
  if (!chances) return false;
  const std::lock_guard lock(mutex_);
  return happens(chances->disconnect);
}

smtp::LinkSpeed Jim::link_speed(const std::optional<Chances>& chances) {
  if (!chances) return {};
  const std::lock_guard lock(mutex_);
  if (!happens(chances->link_speed_affect)) return {};
  const auto most = std::max(chances->link_speed_min, chances->link_speed_max);
  return std::max(1.0, chances->link_speed_min + random() * (most - chances->link_speed_min));
}

std::optional<smtp::Reply> Jim::refuses(At at, const std::optional<Chances>& chances, const std::string& from,
                                        const std::vector<std::string>& to) {
  const std::lock_guard lock(mutex_);
  if (const auto* step = next_step(at, from, to)) {
    if (!step->reply && !step->disconnect) return {};
    auto reply = step->reply.value_or(smtp::Reply{.code = 421, .text = "4.3.2 Closing the connection"});
    reply.close = step->disconnect;
    return reply;
  }
  if (!chances) return {};
  if (at == At::sender && happens(chances->reject_sender))
    return smtp::Reply{.code = 550, .text = "5.1.0 Invalid sender " + from};
  if (at == At::recipient && happens(chances->reject_recipient))
    return smtp::Reply{.code = 550, .text = "5.1.1 Invalid recipient " + to.front()};
  if (at == At::login && happens(chances->reject_auth))
    return smtp::Reply{.code = 535, .text = "5.7.8 Authentication failed"};
  return {};
}

}  // namespace tabella::mail
