package file_test

// The rules in these tests are YAML. Package rulefile imports this one, so only a test from outside can import it.
import _ "github.com/weirhq/weir/rule/rulefile"
