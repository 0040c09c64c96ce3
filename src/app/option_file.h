// A TOML file with options: each key is the name of a flag without its dashes.
#pragma once

#include <expected>
#include <string>
#include <vector>

namespace tabella::app {

struct FileOption {
  std::string key;
  std::vector<std::string> values;  // texts, numbers and truths, as they would be given to a flag
};

// In the order of their keys. A sentence if the file cannot be read, or holds something else.
std::expected<std::vector<FileOption>, std::string> read_option_file(const std::string& path);

}  // namespace tabella::app
