// Reads the members of a JSON object by their types, and remembers the first mistake: what is wrong with a
// request is asked once, at its end. Borrows from the document; on one thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "base/result.h"

namespace tabella::outbox {

class SesReader {
 public:
  // `path` is what the object is called in sentences, as in "Content.Simple."; empty: the request itself.
  SesReader(JsonValue object, std::string path, std::optional<Invalid>& mistake)
      : object_(object), path_(std::move(path)), mistake_(mistake) {
    if (!object_.is_object())
      refuse(path_.empty() ? "The request must be a JSON object."
                           : fmt::format("{} must be an object.", path_.substr(0, path_.size() - 1)));
  }

  // "Content.Simple.Subject".
  std::string called(std::string_view name) const { return path_ + std::string(name); }
  bool has(std::string_view name) const { return find(name).has_value(); }

  std::optional<std::string_view> text(std::string_view name) {
    const auto value = find(name);
    if (!value) return std::nullopt;
    if (value->kind() == JsonValue::Kind::string) return value->string();
    refuse(fmt::format("{} must be a string.", called(name)));
    return std::nullopt;
  }
  // Empty with a mistake, if it is not there.
  std::string_view required_text(std::string_view name) {
    const auto value = text(name);
    if (!value) refuse(fmt::format("{} is missing.", called(name)));
    return value.value_or("");
  }
  std::optional<bool> flag(std::string_view name) {
    const auto value = find(name);
    if (!value) return std::nullopt;
    if (value->kind() == JsonValue::Kind::boolean) return value->boolean();
    refuse(fmt::format("{} must be true or false.", called(name)));
    return std::nullopt;
  }
  std::optional<SesReader> object(std::string_view name) {
    const auto value = find(name);
    if (!value) return std::nullopt;
    return SesReader(*value, called(name) + ".", mistake_);
  }
  // Empty if it is not there.
  std::vector<JsonValue> list(std::string_view name, size_t most = 10'000) {
    std::vector<JsonValue> values;
    const auto value = find(name);
    if (!value) return values;
    if (value->kind() != JsonValue::Kind::array) {
      refuse(fmt::format("{} must be a list.", called(name)));
      return values;
    }
    for (JsonElements each(*value); each.next();) {
      if (values.size() == most) {
        refuse(fmt::format("{} has more than {} elements.", called(name), most));
        break;
      }
      values.push_back(each.value());
    }
    return values;
  }
  std::vector<SesReader> objects(std::string_view name, size_t most = 10'000) {
    std::vector<SesReader> readers;
    for (const auto value : list(name, most))
      readers.emplace_back(value, fmt::format("{}[{}].", called(name), readers.size()), mistake_);
    return readers;
  }

  // Only the first counts.
  void refuse(std::string message) {
    if (!mistake_) mistake_ = Invalid{std::move(message)};
  }
  template <class T>
  T value_or_refuse(Checked<T> checked) {
    if (checked) return std::move(*checked);
    refuse(std::move(checked.error().message));
    return T{};
  }

 private:
  std::optional<JsonValue> find(std::string_view name) const {
    return object_.is_object() ? object_.find(name) : std::nullopt;
  }

  JsonValue object_;
  std::string path_;
  std::optional<Invalid>& mistake_;
};

}  // namespace tabella::outbox
