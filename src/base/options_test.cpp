#include "base/options.h"

#include <gtest/gtest.h>

namespace tabella {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

// What is wrong with the texts; empty: nothing.
std::string set(const OptionValue& value, std::vector<std::string> texts) {
  const auto checked = value.set(texts);
  return checked ? "" : checked.error();
}

std::string shown(const OptionValue& value) { return join(value.show(), ","); }

TEST(AddressOption, TakesHostAndPort) {
  Address address{"127.0.0.1", 8000};
  const auto value = address_option(address);
  EXPECT_EQ(shown(value), "127.0.0.1:8000");
  EXPECT_EQ(set(value, {"[::1]:80"}), "");
  EXPECT_EQ(address, (Address{"::1", 80}));
  EXPECT_EQ(shown(value), "[::1]:80");
  EXPECT_EQ(set(value, {":1025"}), "");
  EXPECT_EQ(address, (Address{"0.0.0.0", 1025})) << "as Go has it: all addresses";
  for (const auto* text :
       {"8000", "localhost:", "localhost:http", "localhost:65536", "localhost:-1", "off", ""})
    EXPECT_EQ(set(value, {text}), "'" + std::string(text) + "' is not HOST:PORT, as in 127.0.0.1:8000");
  EXPECT_EQ(address.port, 1025) << "what is wrong changes nothing";
}

TEST(AddressOption, CanBeOff) {
  std::optional<Address> address = Address{"127.0.0.1", 8025};
  const auto value = address_option(address);
  EXPECT_EQ(set(value, {"off"}), "");
  EXPECT_FALSE(address);
  EXPECT_EQ(shown(value), "off");
}

TEST(SizeOption, TakesUnits) {
  size_t size = 50u << 20;
  const auto value = size_option(size, 1, 1024);
  EXPECT_EQ(shown(value), "50MB");
  for (const auto* text : {"1024", "1k", "1KB", "1024b"}) {
    EXPECT_EQ(set(value, {text}), "") << text;
    EXPECT_EQ(size, 1024u);
  }
  EXPECT_EQ(shown(value), "1KB");
  for (const auto* text : {"0", "1025", "1M", "1KK", "-1", "k", "", "99999999999999999999"})
    EXPECT_EQ(set(value, {text}),
              "'" + std::string(text) + "' is not a size of 1 to 1024 bytes, as in 512MB or 2GB");
}

TEST(SizeOption, MayBeMissing) {
  std::optional<size_t> size;
  const auto value = size_option(size, 0, 1u << 30);
  EXPECT_EQ(shown(value), "");
  EXPECT_EQ(set(value, {"0"}), "");
  EXPECT_EQ(size, 0u);
  EXPECT_EQ(shown(value), "0");
}

TEST(NumberOption, SaysItsBounds) {
  size_t number = 100;
  EXPECT_EQ(set(number_option(number, 1, 1000), {"0"}), "between 1 and 1000");
  EXPECT_EQ(set(number_option(number, 1), {"0"}), "at least 1");
  EXPECT_EQ(set(number_option(number, 0, 256), {"257"}), "257 is more than 256");
  for (const auto* text : {"many", "-1", "1.5", "1 ", ""})
    EXPECT_EQ(set(number_option(number), {text}), "'" + std::string(text) + "' is not a number");
  EXPECT_EQ(number, 100u);
}

TEST(RealOption, SaysItsBounds) {
  double chance = 0.005;
  const auto value = real_option(chance, 0, 1, "CHANCE");
  EXPECT_EQ(shown(value), "0.005");
  EXPECT_EQ(set(value, {"0.5"}), "");
  EXPECT_EQ(chance, 0.5);
  for (const auto* text : {"1.1", "-0.1", "nan", "inf"}) EXPECT_EQ(set(value, {text}), "between 0 and 1");
  EXPECT_EQ(set(value, {"often"}), "'often' is not a number");
}

TEST(TimeOption, FitsWhatItGoesInto) {
  std::optional<milliseconds> settle;
  const auto value = time_option(settle, milliseconds{100}, hours{1});
  EXPECT_EQ(shown(value), "");
  EXPECT_EQ(set(value, {"150ms"}), "");
  EXPECT_EQ(settle, milliseconds{150});
  EXPECT_EQ(shown(value), "150ms");
  for (const auto* text : {"99ms", "2h", "soon", ""})
    EXPECT_EQ(set(value, {text}), "'" + std::string(text) + "' is no time from 100ms to 1h, as in 20s");
  seconds grace{90};
  EXPECT_EQ(shown(time_option(grace, seconds{1}, hours{1})), "90s");
  EXPECT_EQ(set(time_option(grace, seconds{1}, hours{1}), {"10"}), "");
  EXPECT_EQ(grace, seconds{10}) << "seconds, if no unit says otherwise";
}

TEST(LifetimeOption, CanBeForEver) {
  seconds kept{7 * 24 * 3600};
  const auto value = lifetime_option(kept);
  EXPECT_EQ(shown(value), "7d");
  EXPECT_EQ(set(value, {"off"}), "");
  EXPECT_EQ(kept, kForever);
  EXPECT_EQ(shown(value), "off");
  EXPECT_EQ(set(value, {"0"}), "'0' is no time, as in 7d, 12h or 30m; off: for ever");
}

TEST(SwitchOption, TakesTheUsualWords) {
  bool on = false;
  const auto value = switch_option(on);
  EXPECT_EQ(value.placeholder, "");
  EXPECT_EQ(set(value, {"Yes"}), "");
  EXPECT_TRUE(on);
  EXPECT_EQ(set(value, {"false"}), "");
  EXPECT_FALSE(on);
  EXPECT_EQ(set(value, {"maybe"}), "'maybe' is neither true nor false");
}

TEST(ChoiceOption, NamesWhatThereIs) {
  enum class Span { day, half_day, hour };
  auto span = Span::half_day;
  const auto value =
      choice_option(span, {{"day", Span::day}, {"half-day", Span::half_day}, {"hour", Span::hour}});
  EXPECT_EQ(value.placeholder, "day|half-day|hour");
  EXPECT_EQ(shown(value), "half-day");
  EXPECT_EQ(set(value, {"hour"}), "");
  EXPECT_EQ(span, Span::hour);
  EXPECT_EQ(set(value, {"week"}), "'week' is none of day, half-day, hour");
  std::string format = "text";
  EXPECT_EQ(set(word_option(format, {"text", "json"}), {"xml"}), "'xml' is neither text nor json");
}

TEST(TextsOption, ReplacesWhatWasThere) {
  std::vector<std::string> systems = {"mail", "journal"};
  const auto value = texts_option(systems, "NAME", [](std::string_view text) -> OptionCheck {
    if (text == "fax") return std::unexpected("no fax");
    return {};
  });
  EXPECT_EQ(shown(value), "mail,journal");
  EXPECT_EQ(set(value, {"mail", "fax"}), "no fax");
  EXPECT_EQ(shown(value), "mail,journal");
  EXPECT_EQ(set(value, {"journal"}), "");
  EXPECT_EQ(systems, std::vector<std::string>{"journal"});
}

TEST(TextOption, IsCheckedBeforeItIsTaken) {
  std::string name = "a";
  const auto value = text_option(name, "NAME", [](std::string_view text) -> OptionCheck {
    if (text.size() == 1) return {};
    return std::unexpected("one letter");
  });
  EXPECT_EQ(set(value, {"ab"}), "one letter");
  EXPECT_EQ(name, "a");
}

TEST(PartOption, MakesTheWhole) {
  struct Files {
    std::string certificate, key;
  };
  std::optional<Files> files;
  const auto value = part_option(files, &Files::key, "FILE");
  EXPECT_EQ(set(value, {""}), "");
  EXPECT_FALSE(files);
  EXPECT_EQ(set(value, {"key.pem"}), "");
  EXPECT_EQ(files->key, "key.pem");
  EXPECT_EQ(shown(value), "key.pem");
}

TEST(Option, HasItsVariableFromItsName) {
  std::string path;
  const Option option{"--web-path,--ui-web-path", text_option(path, "PATH"), ""};
  EXPECT_EQ(option.name(), "--web-path");
  EXPECT_EQ(option.variable(), "TABELLA_WEB_PATH");
  EXPECT_EQ(option.names().back(), "--ui-web-path");
}

TEST(OptionGroup, KnowsWhatGoesTogether) {
  const OptionSources given = {{"--tls-key", {OptionSource::Kind::flag, "--tls-key"}}};
  EXPECT_EQ(go_together(given, "--tls-cert", "--tls-key").error(),
            "--tls-cert and --tls-key go together: give both or neither");
  EXPECT_TRUE(go_together(given, "--a", "--b"));
  EXPECT_EQ(refuse_given(given, {"--data", "--tls-key"}, "is for another store").error(),
            "--tls-key: is for another store");
}

}  // namespace
}  // namespace tabella
