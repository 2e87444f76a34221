# What the Ruby tests share: where their server is, tests that are counted, and waiting.
require "redis"
require "timeout"

PORT = Integer(ENV.fetch("FRAMEWORK_PORT"))
$passed = $failed = 0

def test(name)
  Timeout.timeout(60) { yield }
  $passed += 1
rescue Exception => error # rubocop:disable Lint/RescueException
  $failed += 1
  puts "#{name}: #{error.full_message(highlight: false)}"
end

def equal(expected, came)
  raise "expected #{expected.inspect}, came #{came.inspect}" unless expected == came
end

def raises(kind, text)
  yield
rescue kind => error
  raise "another error: #{error.message}" unless error.message.match?(text)
else
  raise "no error"
end

def wait_until(seconds = 20)
  deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
  until (value = yield)
    raise "not so after #{seconds} s" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
    sleep 0.05
  end
  value
end

def finish
  puts "#{$passed} passed, #{$failed} failed"
  exit $failed.zero?
end
