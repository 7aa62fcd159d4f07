#include "service.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

extern char** environ;

namespace cudart {
namespace {

// The folder that holds the package `warpsmith`, from where this library lies (warpsmith/cudart/).
std::string package_parent() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(&package_parent), &info) || !info.dli_fname) return {};
  char* real = realpath(info.dli_fname, nullptr);
  std::string path = real ? real : info.dli_fname;
  free(real);
  for (int up = 0; up < 3; ++up) path = path.substr(0, path.find_last_of('/') == std::string::npos ? 0 : path.find_last_of('/'));
  return path;
}

bool executable(const std::string& path) { return !path.empty() && access(path.c_str(), X_OK) == 0; }

// The Python that warpsmith is installed in: as told, as noted beside this library by the command that
// linked the program, or as the usual places of an environment suggest.
std::string interpreter(const std::string& parent) {
  if (const char* told = getenv("WARPSMITH_PYTHON")) return told;
  std::string noted(4096, '\0');
  int fd = open((parent + "/warpsmith/cudart/interpreter").c_str(), O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? 0 : read(fd, &noted[0], noted.size());
  if (fd >= 0) close(fd);
  noted.resize(n > 0 ? n : 0);
  while (!noted.empty() && noted.back() == '\n') noted.pop_back();
  const std::string guesses[] = {noted, parent + "/../../../bin/python3", parent + "/../.venv/bin/python3"};
  for (const std::string& guess : guesses)
    if (executable(guess)) return guess;
  return "python3";
}

int to_listener(const char* path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (strlen(path) >= sizeof address.sun_path) return -1;
  strcpy(address.sun_path, path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    close(fd);
    fd = -1;
  }
  return fd;
}

// Starts `python -m warpsmith.devices.emulator.service 3`, which serves this process and ends with it.
int start_own(std::string& python, std::string& error) {
  std::string parent = package_parent();
  python = interpreter(parent);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    error = std::string("no socket for the compile service: ") + strerror(errno);
    return -1;
  }
  std::vector<std::string> environment;
  std::string path = parent;
  for (char** e = environ; *e; ++e) {
    if (strncmp(*e, "PYTHONPATH=", 11) == 0) path += std::string(":") + (*e + 11);
    else environment.push_back(*e);
  }
  environment.push_back("PYTHONPATH=" + path);
  std::vector<char*> envp;
  for (std::string& e : environment) envp.push_back(&e[0]);
  envp.push_back(nullptr);
  const char* argv[] = {python.c_str(), "-m", "warpsmith.devices.emulator.service", "3", nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // dup2 to the same number would keep close-on-exec, so go through a number that is surely free.
  int high = fcntl(ends[1], F_DUPFD, 10);
  posix_spawn_file_actions_adddup2(&actions, high, 3);
  posix_spawn_file_actions_addclose(&actions, high);
  pid_t pid;
  int failed = posix_spawnp(&pid, python.c_str(), &actions, nullptr, const_cast<char**>(argv), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  close(high);
  close(ends[1]);
  if (failed) {
    close(ends[0]);
    error = "cannot start the compiler of the kernels (" + python + ": " + strerror(failed) +
            "); set WARPSMITH_PYTHON to a Python in which warpsmith is installed";
    return -1;
  }
  return ends[0];
}

}  // namespace

bool Service::connect(std::string& error) {
  const char* path = getenv("WARPSMITH_SERVICE");
  fd_ = path && *path ? to_listener(path) : -1;
  // The parent may be gone while a program that it started still runs.
  if (fd_ < 0) fd_ = start_own(python_, error);
  return fd_ >= 0;
}

bool Service::ask(Ask kind, const Writer& question, Reader& answer, std::string& error) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::string payload;
  if (!send(kind, question.bytes) || !receive(payload)) {
    error = python_.empty() ? "the warpsmith process that compiles the kernels of this program is gone"
                            : "the process that compiles the kernels (" + python_ + " -m warpsmith.devices.emulator.service)" +
                                  " ended; set WARPSMITH_PYTHON to a Python in which warpsmith works";
    return false;
  }
  answer = Reader(std::move(payload));
  return true;
}

void Service::tell(Ask kind, const std::string& text) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (fd_ >= 0) send(kind, text);
}

bool Service::send(Ask kind, const std::string& payload) {
  uint32_t head[2] = {static_cast<uint32_t>(kind), static_cast<uint32_t>(payload.size())};
  std::string all(reinterpret_cast<char*>(head), sizeof head);
  all += payload;
  for (size_t done = 0; done < all.size();) {
    ssize_t n = ::send(fd_, all.data() + done, all.size() - done, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += n;
  }
  return true;
}

bool Service::receive(std::string& payload) {
  auto fill = [this](void* to, size_t size) {
    for (size_t done = 0; done < size;) {
      ssize_t n = ::recv(fd_, static_cast<char*>(to) + done, size - done, 0);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      done += n;
    }
    return true;
  };
  uint32_t size = 0;
  if (!fill(&size, sizeof size)) return false;
  payload.resize(size);
  return fill(&payload[0], size);
}

}  // namespace cudart
