// The connection to the compile service: `warpsmith run` has one waiting; a program that was started by
// hand starts one of its own.
#pragma once
#include <mutex>
#include <string>

#include "wire.h"

namespace cudart {

class Service {
 public:
  // Connects, or starts a service.  On failure `error` is one sentence for the user.
  bool connect(std::string& error);
  // Sends a question and waits for its answer.
  bool ask(Ask kind, const Writer& question, Reader& answer, std::string& error);
  // Sends something that has no answer; lost when there is no service any more.
  void tell(Ask kind, const std::string& text);

 private:
  bool send(Ask kind, const std::string& payload);
  bool receive(std::string& payload);

  std::mutex mutex_;
  int fd_ = -1;
  std::string python_;  // of the service that this program started, if it did
};

}  // namespace cudart
