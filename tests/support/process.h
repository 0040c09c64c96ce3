// A child process of a test, which ends with it.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <chrono>
#include <csignal>
#include <stdexcept>
#include <string>
#include <vector>

namespace tabella::test {

class Process {
 public:
  using Variables = std::vector<std::string>;  // "NAME=value"

  // Starts a program, with more variables than ours, and waits until a line of its output holds `ready`.
  Process(const std::vector<std::string>& command, const std::string& ready, const Variables& variables = {},
          const std::string& folder = {}) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    std::vector<char*> arguments;
    for (const auto& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    std::vector<char*> environment;
    for (char** variable = environ; *variable; ++variable) environment.push_back(*variable);
    for (const auto& variable : variables) environment.push_back(const_cast<char*>(variable.c_str()));
    environment.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    if (!folder.empty()) posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
    const int failed =
        posix_spawnp(&pid_, arguments[0], &actions, nullptr, arguments.data(), environment.data());
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    output_ = ends[0];
    if (failed != 0) throw std::runtime_error("cannot start " + command[0]);
    wait_for(ready, command[0]);
  }
  ~Process() { end(SIGKILL); }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void end(int signal) {
    if (pid_ <= 0) return;
    kill(pid_, signal);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
    close(output_);
  }

 private:
  void wait_for(const std::string& ready, const std::string& name) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    std::string text;
    while (text.find(ready) == std::string::npos) {
      pollfd readable{.fd = output_, .events = POLLIN, .revents = 0};
      char buffer[4096];
      const bool waited = poll(&readable, 1, 1000) >= 0;
      const ssize_t count = waited && readable.revents != 0 ? read(output_, buffer, sizeof buffer) : -1;
      if (count > 0) text.append(buffer, static_cast<size_t>(count));
      if (count == 0 || std::chrono::steady_clock::now() > until) {
        end(SIGKILL);
        throw std::runtime_error(name + " did not start: " + text);
      }
    }
    // Whatever it says from now on is nobody's business, but must not stop it.
    fcntl(output_, F_SETFL, O_NONBLOCK);
  }

  pid_t pid_ = 0;
  int output_ = -1;
};

// A port for a server of this test alone. It stays bound until the process ends: the system gives it to
// nobody else, and a server that sets SO_REUSEADDR, as all do, may still listen on it.
uint16_t free_port();

}  // namespace tabella::test
