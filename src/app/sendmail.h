// `tabella sendmail`: the command that programs pipe their mail into, as sendmail and mhsendmail are.
#pragma once

#include <string>
#include <vector>

namespace tabella::app {

// Sends what is on standard input. Returns the exit code, one of sysexits.h.
int sendmail(const std::vector<std::string>& arguments);

}  // namespace tabella::app
