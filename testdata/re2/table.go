// Writes matches.txt and replacements.txt: the results of Go's regexp for patterns that are compiled as in Prometheus.
// The tables are committed (generated once by `go run table.go` with Go 1.26), so that no test needs Go.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"regexp"
	"regexp/syntax"
	"strings"
)

var values = []string{
	"", "a", "b", "ab", "abc", "A", "k", "K", "\u212a", "s", "\u017f", "é", "É", "ß", "ẞ", "ö", "_", "0", "9", "٣", "a1_", "a b",
	" ", "\t", "\n", "\v", "\f", "\r", "\u0085", "\u00a0", "\u2028", "a\nb", "a\n", "\na", "-", "]", "[", "&", "a&&b", "~", "^", "$", ".",
	"{", "}", "a{", "a{,2}", "{2}", "x{2}", "<", ">", "a.b", "a|b", "\\", "\\d", "*", "漢", "漢字", "Δ", "δ", "ς", "σ", "Σ", "\x00", "\x7f",
	"aa", "aaa", "aaaa", "ba", "host-1", "host_1:9100", "aé", "éa", "a é", "\ufffd", "\U0010ffff", "K1", "ı", "İ", "i", "I", "start", "bstart",
}

var patterns = []string{
	`\w+`, `\W`, `\W+`, `\d`, `\d+`, `\D`, `\s`, `\S`, `\s+`, `[\w]`, `[^\w]`, `[\W]`, `[\d\s]`, `[^\d]`, `[\D]`, `(?i)\w`, `(?i)\W`, `(?i)[\w]`, `(?i)[^\W]`,
	`\ba\b`, `\bé\b`, `a\b.*`, `.*\bé`, `\B`, `\Ba`, `é\B`, `é\Ba`, `a\Bé`, `a\bé`, `.*\b.*`, `\b`, `.*\B.*`, `\b+a`, `\b{2}`, `a\b{start}`,
	`(?i)k`, `(?i)s`, `(?i)é`, `(?i)ß`, `(?i)σ`, `(?i)i`, `(?i)[a-z]`, `(?i)[^k]`, `(?i)ab`, `(?i:a)b`, `a(?i)b`, `a(?i)b|B`, `(a(?i)b)B`, `(?i)(?-i)a`, `(?i)(?-i:a)b`,
	`[[:alpha:]]`, `[[:alpha:]]+`, `[[:^alpha:]]`, `[^[:alpha:]]`, `[[:word:]]`, `[[:space:]]`, `[[:punct:]]`, `[[:upper:]]`, `(?i)[[:upper:]]`, `(?i)[[:^upper:]]`, `[[:digit:]]`, `[[:foo:]]`, `[[:alpha]`, `[:alpha:]`, `[[:print:]]`, `[[:graph:]]`, `[[:cntrl:]]`, `[[:blank:]]`, `[[:ascii:]]`, `[[:xdigit:]]`, `[[:lower:][:digit:]_]+`, `[[:alnum:]]`,
	`.`, `..`, `.*`, `.+`, `(?-s).`, `(?-s).*`, `(?-s:.)`, `(?s).`, `a.b`, `[^a]`, `[^a]+`, `^a$`, `(?m)^a$`, `(?m)a$\nb`, `a$.*`, `(?m)a$.*`, `^`, `$`, `a^`, `\Aa\z`, `(?m)\Aa\z`, `a\Z`, `^^a$$`, `^*a`, `$?`, `(?m)^b|a\nb`,
	`[a&&b]+`, `[a--b]`, `[a~~b]+`, `[a[b]]`, `[[a]b]`, `[]a]`, `[^]a]`, `[]`, `[a-]`, `[-a]`, `[a-z-9]+`, `[\d-z]`, `[a-\d]`, `[b-a]`, `[z-a]`, `[a`, `[\]]`, `[\^]`, `[a\-z]`, `[.]`, `[$]`, `[\b]`, `[\x41-\x43]`, `[é-ö]`, `[\n]`, `[^\n]`, `[|]`, `[{}]`, `[[]`, `[&]`, `[~]+`, `[-]`, `[--/]`, `[^-a]`,
	`\pL`, `\p{L}`, `\PL`, `\p{Lu}`, `\p{^Lu}`, `\P{^Lu}`, `(?i)\p{Lu}`, `\p{Greek}`, `\p{Han}+`, `[\p{Greek}a]`, `[^\pL]`, `\p{Alphabetic}`, `\p{gc=L}`, `\p{Script=Greek}`, `\p`, `\p{`, `\p{Any}`, `\pN`, `\pX`, `\p{Zs}`, `\p{Cc}`, `[\pL\d]+`,
	`\a`, `\f`, `\n`, `\r`, `\t`, `\v`, `\x41`, `\x{41}`, `\x{212A}`, `\x`, `\x4`, `\x{}`, `\x{110000}`, `\u0041`, `\U00000041`, `\101`, `\07`, `\0`, `\1`, `\8`, `\12`, `\141`, `\e`, `\c`, `\C`, `\R`, `\h`, `\_`, `\-`, `\<`, `\>`, `\&`, `\ `, `\é`, `\/`, `\{`, `\}`, `\]`, `\"`, `\'`, `\`, `\\`, `\\d`, `\K`, `\G`, `\Q.\E`, `\Qa|b\E`, `\Qa`, `\Qa\E*`, `\Q\E`, `\E`, `\Qab\E{2}`, `(\Q)\E)`,
	`a*`, `a+`, `a?`, `a{2}`, `a{2,}`, `a{1,3}`, `a{0}`, `a{,2}`, `a{`, `{`, `{2}`, `}`, `a{2`, `x{2}`, `a{2}{2}`, `a**`, `a*+`, `a+?`, `a*?`, `a??`, `a{2}?`, `a{1001}`, `a{1000}`, `a{1,1001}`, `a{3,2}`, `(a{100}){10}`, `(a{100}){11}`, `a{01}`, `a{-1}`, `a{ 1}`, `*`, `+a`, `?`, `(*)`, `|*`, `(|a)*`, `()*`, `(?:)`, `()`, `(?:a)+`, `(?:a|b)*`, `a||b`, `|a`, `a|`, `|`, `(a|)`, `(?i)*`, `a(?i)*`, `x{2}{`, `a{1}{,2}`, `((a{10}){10}){10}`, `((a{10}){10}){11}`, `(a*){1000}`,
	`(?P<n>a)`, `(?<n>a)`, `(?P<n>a)(?P<n>b)`, `(?P<1>a)`, `(?P<>a)`, `(?P<n.x>a)`, `(?P=n)`, `(?P<n`, `(?'n'a)`, `(?#c)a`, `(?=a)`, `(?!a)`, `(?<=a)`, `(?>a)`, `(?x) a`, `(?u)a`, `(?R)a`, `(?U)a+`, `(?U:a+)`, `(?ii)a`, `(?i-)a`, `(?-)a`, `(?)a`, `(?is)A.`, `(?s-i:a)`, `(?i--s)a`, `(?`, `(?i`, `(`, `)`, `(a`, `a)`, `a)|(b`, `(a))`, `(?:`, `((((a))))`, `(?i)\x{212A}`, `(?i)\Qk\E`, `(?i)[\x{212A}]`, `(?i)[k-l]`, `(?i)\pK`, `(?im)^K$`,
	`a|b|ab`, `host_(1|2).*`, `host-\d+`, `host_\d:\d+`, `é|ö`, `(é|ö)+`, `a.*|b.*`, `.*a.*`, `a[^b]*`, `[a-c]{2}`, `ab?c?`, `(ab|a)(bc|c)?`, `\d{1,3}\.\d`, `a\.b`, `a\|b`, `\\`, `\\d`, `漢.`, `..?`, `\x{10FFFF}`, `[\x{FFFD}]`,
}

var pieces = []string{
	"a", "b", "k", "é", "_", "1", ".", "|", "(", ")", "(?:", "(?i)", "(?-i)", "(?i:", "(?s)", "(?-s)", "(?m)", "*", "+", "?", "{2}", "{1,2}", "{", "^", "$", `\b`, `\B`,
	`\w`, `\W`, `\d`, `\s`, `\S`, "[a-b]", "[^a]", `[\w-]`, `[^\s]`, "[[:alpha:]]", "[", "]", "&&", `\.`, `\pL`, `\Q`, `\E`, `\n`, "-", "\n",
}

// compile follows Prometheus' FastRegexMatcher: parses the pattern first, then anchors it.
func compile(pattern string) (*regexp.Regexp, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl|syntax.DotNL)
	if err != nil {
		return nil, err
	}
	return regexp.Compile("^(?s:" + parsed.String() + ")$")
}

func quoted(text string) string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

func create(name string, write func(*bufio.Writer)) {
	file, err := os.Create(name)
	if err != nil {
		panic(err)
	}
	out := bufio.NewWriter(file)
	write(out)
	if err := out.Flush(); err != nil {
		panic(err)
	}
}

func main() {
	random := rand.New(rand.NewSource(7))
	all := append([]string{}, patterns...)
	for len(all) < 1600 {
		var text strings.Builder
		for n := 1 + random.Intn(6); n > 0; n-- {
			text.WriteString(pieces[random.Intn(len(pieces))])
		}
		all = append(all, text.String())
	}
	create("matches.txt", func(out *bufio.Writer) {
		fmt.Fprintln(out, "# values, then: pattern, and whether each value matches (1 or 0), or error; made by table.go")
		for _, value := range values {
			fmt.Fprintln(out, "value", quoted(value))
		}
		for _, pattern := range all {
			result := "error"
			if compiled, err := compile(pattern); err == nil {
				bits := make([]byte, 0, len(values))
				for _, value := range values {
					if compiled.MatchString(value) {
						bits = append(bits, '1')
					} else {
						bits = append(bits, '0')
					}
				}
				result = string(bits)
			}
			fmt.Fprintln(out, result, quoted(pattern))
		}
	})
	create("replacements.txt", func(out *bufio.Writer) {
		fmt.Fprintln(out, "# label_replace: [pattern, value, replacement, result], null where it does not match; made by table.go")
		for _, pattern := range []string{`(.*)`, `(\w+)-(\w*)`, `(?P<first>a+)(?<second>.*)`, `(a)|(b)`, `a)|(b`, `(?i)(k)(.*)`, `((a)(b)?).*`, `.*`, `(é)?(.*)`, `(?U)(a+)(.*)`} {
			compiled, err := regexp.Compile("^(?s:" + pattern + ")$")
			if err != nil {
				panic(err)
			}
			for _, value := range []string{"", "a", "ab", "a-b", "aab", "b", "é1", "K\u212a", "a\nb"} {
				for _, replacement := range []string{"$1", "${1}", "$1x", "${1}x", "$2$1", "$$1", "$", "$$", "${", "${1", "${}", "$0", "$01", "${01}", "$first", "${first}-${second}", "${no such}", "$1é", "$é", "$-", "x$", "${1}${2}${3}", "$9", "$18446744073709551616", "${1:a}", "a$ b", "$first_", "$$$1"} {
					result := "null"
					if found := compiled.FindStringSubmatchIndex(value); found != nil {
						result = quoted(string(compiled.ExpandString([]byte{}, replacement, value, found)))
					}
					fmt.Fprintf(out, "[%s,%s,%s,%s]\n", quoted(pattern), quoted(value), quoted(replacement), result)
				}
			}
		}
	})
}
