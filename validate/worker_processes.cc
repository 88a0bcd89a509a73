#include "validate/worker_processes.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <thread>

#include "sim/error.h"

namespace windtunnel::validate {
namespace {

/// Head of a piece's answer on the pipe; the text follows.
struct Head {
  std::uint64_t done = 0;
  std::uint64_t length = 0;
};

bool WriteAll(int file, const void* data, std::size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = write(file, at, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    at += written;
    size -= static_cast<std::size_t>(written);
  }
  return true;
}

/// false at the end of the pipe.
bool ReadAll(int file, void* data, std::size_t size) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = read(file, at, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

struct Child {
  pid_t pid = -1;
  int orders = -1;   // The parent writes the number of a piece.
  int answers = -1;  // The child writes its answer.
  std::optional<std::size_t> piece;
};

[[noreturn]] void Serve(int orders, int answers,
                        const std::function<std::string(std::size_t)>& work) {
  std::uint64_t piece = 0;
  while (ReadAll(orders, &piece, sizeof piece)) {
    Head head;
    std::string text;
    try {
      text = work(static_cast<std::size_t>(piece));
      head.done = 1;
    } catch (const std::exception& error) {
      text = error.what();
    }
    head.length = text.size();
    if (!WriteAll(answers, &head, sizeof head) || !WriteAll(answers, text.data(), text.size()))
      break;
  }
  // Nothing of the parent's may be flushed or destroyed twice.
  _exit(0);
}

class Pool {
 public:
  Pool(std::size_t count, unsigned processes, const std::function<std::string(std::size_t)>& work)
      : results_(count) {
    // A child that died must not take the parent with it when its pipe is written.
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &ignore, &before_);
    std::fflush(nullptr);
    for (unsigned p = 0; p < processes; ++p) {
      int orders[2];
      int answers[2];
      if (pipe(orders) != 0 || pipe(answers) != 0) Fail("pipe");
      const pid_t pid = fork();
      if (pid < 0) Fail("fork");
      if (pid == 0) {
        for (const Child& other : children_) {
          close(other.orders);
          close(other.answers);
        }
        close(orders[1]);
        close(answers[0]);
        Serve(orders[0], answers[1], work);
      }
      close(orders[0]);
      close(answers[1]);
      children_.push_back({pid, orders[1], answers[0], {}});
    }
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() {
    for (Child& child : children_) End(child);
    sigaction(SIGPIPE, &before_, nullptr);
  }

  std::vector<PieceResult> Run(const std::function<void(std::size_t)>& progress) {
    for (Child& child : children_) HandOut(child);
    std::size_t done = 0;
    while (done < results_.size()) {
      std::vector<pollfd> waiting;
      std::vector<Child*> of;
      for (Child& child : children_) {
        if (!child.piece) continue;
        waiting.push_back({.fd = child.answers, .events = POLLIN, .revents = 0});
        of.push_back(&child);
      }
      if (waiting.empty()) break;  // All children have ended: the rest has no answer.
      if (poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) Fail("poll");
      for (std::size_t i = 0; i < waiting.size(); ++i) {
        if (waiting[i].revents == 0) continue;
        Take(*of[i]);
        ++done;
        if (progress) progress(done);
        HandOut(*of[i]);
      }
    }
    for (PieceResult& result : results_)
      if (!result.done && result.text.empty()) result.text = "no worker was left to do it";
    return std::move(results_);
  }

 private:
  [[noreturn]] static void Fail(const char* what) {
    throw SimulationError(fmt::format("worker processes: {}: {}", what, std::strerror(errno)));
  }

  void HandOut(Child& child) {
    if (child.orders < 0 || next_ == results_.size()) return;
    const std::uint64_t piece = next_;
    if (!WriteAll(child.orders, &piece, sizeof piece)) return;
    child.piece = next_++;
  }

  void Take(Child& child) {
    PieceResult& result = results_[*child.piece];
    child.piece.reset();
    Head head;
    if (ReadAll(child.answers, &head, sizeof head)) {
      result.text.resize(head.length);
      if (ReadAll(child.answers, result.text.data(), result.text.size())) {
        result.done = head.done != 0;
        return;
      }
    }
    const int status = End(child);
    result.text = WIFSIGNALED(status)
                      ? fmt::format("the worker ended by signal {} ({})", WTERMSIG(status),
                                    strsignal(WTERMSIG(status)))
                      : fmt::format("the worker ended with status {}", WEXITSTATUS(status));
  }

  static int End(Child& child) {
    int status = 0;
    if (child.orders >= 0) close(child.orders);
    if (child.answers >= 0) close(child.answers);
    child.orders = child.answers = -1;
    if (child.pid > 0) {
      while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
      }
    }
    child.pid = -1;
    return status;
  }

  std::vector<PieceResult> results_;
  std::vector<Child> children_;
  std::size_t next_ = 0;
  struct sigaction before_ {};
};

}  // namespace

std::vector<PieceResult> RunInProcesses(std::size_t count, unsigned processes,
                                        const std::function<std::string(std::size_t)>& work,
                                        const std::function<void(std::size_t)>& progress) {
  constexpr unsigned kMostProcesses = 16;
  if (processes == 0) processes = std::min(kMostProcesses, std::thread::hardware_concurrency());
  processes =
      static_cast<unsigned>(std::clamp<std::size_t>(processes, 1, std::max<std::size_t>(1, count)));
  return Pool(count, processes, work).Run(progress);
}

}  // namespace windtunnel::validate
