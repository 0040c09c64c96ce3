// Credentials and regions out of the environment and out of ~/.aws/credentials and ~/.aws/config.
#include <fstream>
#include <map>
#include <sstream>

#include <fmt/format.h>

#include "base/environment.h"
#include "remote/credentials.h"

namespace tabella::remote {
namespace {

std::string path_of(const char* override_name, const char* file) {
  if (auto path = environment_variable(override_name); !path.empty()) return path;
  const auto home = environment_variable("HOME");
  return home.empty() ? "" : fmt::format("{}/.aws/{}", home, file);
}

std::string trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin));
}

using Section = std::map<std::string, std::string, std::less<>>;

// The section of that name. Lines that are indented belong to a nested setting of the one above.
std::optional<Section> read_section(const std::string& path, std::string_view wanted) {
  std::ifstream file(path);
  std::optional<Section> section;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#' || line[0] == ';' || line[0] == ' ' || line[0] == '\t') continue;
    if (line[0] == '[') {
      const auto name = trimmed(std::string_view(line).substr(1, line.find(']') - 1));
      inside = name == wanted;
      if (inside && !section) section.emplace();
      continue;
    }
    const auto equals = line.find('=');
    if (!inside || equals == std::string::npos) continue;
    auto value = trimmed(std::string_view(line).substr(equals + 1));
    if (const auto comment = value.find(" #"); comment != std::string::npos)
      value = trimmed(value.substr(0, comment));
    (*section)[trimmed(std::string_view(line).substr(0, equals))] = std::move(value);
  }
  return section;
}

std::string profile_or_default(std::string_view profile) {
  if (!profile.empty()) return std::string(profile);
  auto named = environment_variable("AWS_PROFILE");
  return named.empty() ? "default" : named;
}

// Both files may hold a profile; in config it is called [profile NAME].
std::optional<Section> read_config(const std::string& profile) {
  const auto path = path_of("AWS_CONFIG_FILE", "config");
  return read_section(path, profile == "default" ? profile : "profile " + profile);
}

std::string get(const Section& section, std::string_view key) {
  const auto at = section.find(key);
  return at == section.end() ? "" : at->second;
}

}  // namespace

Place from_environment() {
  Credentials found{.access_key = environment_variable("AWS_ACCESS_KEY_ID"),
                    .secret_key = environment_variable("AWS_SECRET_ACCESS_KEY"),
                    .session_token = environment_variable("AWS_SESSION_TOKEN"),
                    .expires = {}};
  if (found.access_key.empty() && found.secret_key.empty()) return std::nullopt;
  if (found.access_key.empty() || found.secret_key.empty())
    return std::unexpected(
        CredentialError{"AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY go together: one of them is not set"});
  return found;
}

Place from_files(std::string_view profile, bool made_up_will_do) {
  const auto name = profile_or_default(profile);
  const bool asked_for = !profile.empty() || !environment_variable("AWS_PROFILE").empty();
  const auto wrong = [](std::string message) { return std::unexpected(CredentialError{std::move(message)}); };
  auto section = read_section(path_of("AWS_SHARED_CREDENTIALS_FILE", "credentials"), name);
  if (const auto config = read_config(name)) {
    if (!section) section.emplace();
    section->insert(config->begin(), config->end());
  }
  if (!section) {
    if (!asked_for) return std::nullopt;
    return wrong(fmt::format("there is no profile '{}' in ~/.aws/credentials or ~/.aws/config", name));
  }
  for (const auto* other : {"role_arn", "sso_session", "sso_start_url", "credential_process"}) {
    if (!section->contains(other)) continue;
    if (made_up_will_do && profile.empty()) return std::nullopt;
    return wrong(
        fmt::format("the profile '{}' has {}, which is not supported; give it keys, or export those that "
                    "`aws configure export-credentials` prints",
                    name, other));
  }
  Credentials found{.access_key = get(*section, "aws_access_key_id"),
                    .secret_key = get(*section, "aws_secret_access_key"),
                    .session_token = get(*section, "aws_session_token"),
                    .expires = {}};
  if (!found.access_key.empty() && !found.secret_key.empty()) return found;
  if (asked_for)
    return wrong(fmt::format("the profile '{}' has no aws_access_key_id and aws_secret_access_key", name));
  return std::nullopt;
}

std::string default_region(std::string_view profile) {
  for (const auto* name : {"AWS_REGION", "AWS_DEFAULT_REGION"})
    if (auto region = environment_variable(name); !region.empty()) return region;
  const auto name = profile_or_default(profile);
  if (const auto config = read_config(name)) return get(*config, "region");
  return {};
}

}  // namespace tabella::remote
