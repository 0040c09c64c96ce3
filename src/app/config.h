// `tabella config`: what is in force, and who has said so.
#pragma once

#include <string>
#include <vector>

#include "base/options.h"

namespace tabella::app {

// A line for each option, under the title of its group. Of secrets only whether they are set; hidden options
// only if they were given.
std::string config_text(const std::vector<OptionGroup>& groups, const OptionSources& given);

// {"groups":[{"title":…,"options":[{"name":…,"value":…,"source":"default|flag|variable|file","from":…}]}]}
// Values are texts, lists of them where an option is repeatable, null where nothing is set.
std::string config_json(const std::vector<OptionGroup>& groups, const OptionSources& given);

}  // namespace tabella::app
