#include "analyzer/cli/recorder.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "analyzer/cli/command.h"
#include "analyzer/cli/executed_model.h"
#include "analyzer/cli/other_program.h"
#include "base/descriptor.h"
#include "base/escape.h"

namespace tensorlint::cli {

/// runtime/compare/NAME.py; made from the file when this is built.
std::string_view recorder_program(std::string_view name);

namespace {

constexpr int kNotStarted = 127;  // as shells have it

/// Runs the recorder from standard input. Python looks for modules in the current folder first, which may be a
/// stranger's repository with an onnxruntime.py of its own: not here.
constexpr std::string_view kStart =
    "import sys; sys.path[:] = [p for p in sys.path if p]; exec(compile(sys.stdin.buffer.read(), 'record.py', 'exec'))";

/// A folder that only this user can read, until this goes.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code error;
    path_ = (std::filesystem::temp_directory_path(error) / "tensorlint-XXXXXX").string();
    if (error || ::mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::atomic<::pid_t> g_child{0};
std::atomic<int> g_noted_signal{0};
static_assert(std::atomic<::pid_t>::is_always_lock_free);

void pass_on(int signal) {
  g_noted_signal = signal;
  if (const ::pid_t child = g_child; child > 0) ::kill(child, signal);
}

/// While one lives, signals that ask this process to end are passed on to its child. It is ended by the signal when the
/// child has gone and what was declared after this has been cleaned up.
class ForwardedSignals {
 public:
  ForwardedSignals() {
    g_noted_signal = 0;
    struct ::sigaction action{};
    action.sa_handler = &pass_on;
    ::sigemptyset(&action.sa_mask);
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      // What a caller ignores stays ignored, as under nohup.
      is_held_[i] = ::sigaction(kSignals[i], nullptr, &previous_[i]) == 0 && previous_[i].sa_handler != SIG_IGN &&
                    ::sigaction(kSignals[i], &action, nullptr) == 0;
    }
  }
  ~ForwardedSignals() {
    for (std::size_t i = 0; i < kSignals.size(); ++i)
      if (is_held_[i]) ::sigaction(kSignals[i], &previous_[i], nullptr);
    if (const int signal = g_noted_signal; signal != 0) {
      ::signal(signal, SIG_DFL);
      ::raise(signal);
    }
  }
  ForwardedSignals(const ForwardedSignals&) = delete;
  ForwardedSignals& operator=(const ForwardedSignals&) = delete;

 private:
  static constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};
  std::array<struct ::sigaction, kSignals.size()> previous_{};
  std::array<bool, kSignals.size()> is_held_{};
};

/// Becomes Python with the recorder as its program.
int start_python(std::vector<std::string> arguments, const Descriptor& program) {
  if (::dup2(program.number(), STDIN_FILENO) < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return kNotStarted;
  const std::vector<char*> pointers = pointers_to(arguments);
  ::execvp(pointers.front(), pointers.data());
  return kNotStarted;
}

}  // namespace

int in_child(const std::function<int()>& work, int* signal) {
  const ::pid_t parent = ::getpid(), child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a run does not outlive who would take its results
    ::_exit(::getppid() == parent ? work() : kNotStarted);
  }
  g_child = child;
  if (const int noted = g_noted_signal; child > 0 && noted != 0) ::kill(child, noted);  // it came before the child
  int status = 0, failed = 0;
  while (child > 0 && failed == 0 && ::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) failed = errno;
  g_child = 0;
  if (failed != 0) return kExitInternal;
  if (signal != nullptr && child > 0 && WIFSIGNALED(status)) *signal = WTERMSIG(status);
  return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : kExitInternal;
}

Result<int> with_recorded_values(const RecordOptions& options, const TimeLimit& limit,
                                 const std::function<int(const std::string&)>& use) {
  const ForwardedSignals signals;
  const TemporaryFolder folder;
  const Descriptor program = memory_file(recorder_program("record"), Inherited::kNo);
  if (folder.path().empty() || !program.ok()) return Error{"there is no place for the values to record", {}};
  std::vector<std::string> arguments{options.python, "-c", std::string(kStart), options.model, "--out", folder.path()};
  if (!options.seed.empty()) arguments.insert(arguments.end(), {"--seed", options.seed});
  for (const std::string& input : options.inputs) arguments.insert(arguments.end(), {"--inputs", input});
  int signal = 0;
  const auto record = [&] {
    limit.start();
    return start_python(arguments, program);
  };
  const int code = in_child(record, &signal);
  if (limit.ended(signal)) return kExitNotChecked;
  if (code == kNotStarted)
    return Error{fmt::format("{} cannot be started: name a Python that has onnxruntime with --python",
                             quoted_for_people(options.python)),
                 {}};
  if (signal != 0) return Error{fmt::format("signal {} ended Python while onnxruntime had the model", signal), {}};
  if (code != 0) return Error{"onnxruntime did not record the model: see above", {}};
  return use(folder.path());
}

Result<int> with_outputs(std::vector<std::string> arguments, const std::function<int(const std::string&)>& use) {
  const ForwardedSignals signals;
  const TemporaryFolder folder;
  if (folder.path().empty()) return Error{"there is no place for the outputs", {}};
  arguments.push_back(fmt::format("--record={}", folder.path()));
  const int code = in_child([&] { return start_runtime(std::move(arguments)); });
  return code == kExitClean ? use(folder.path()) : code;
}

}  // namespace tensorlint::cli
