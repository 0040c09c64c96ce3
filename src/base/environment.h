#pragma once

#include <cstdlib>
#include <string>

namespace tabella {

// Empty where the variable is not set.
inline std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets any
  return value ? value : "";
}

}  // namespace tabella
