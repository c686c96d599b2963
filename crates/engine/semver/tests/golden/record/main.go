// Prints the golden table of fl-semver: what Masterminds/semver answers to the lists beside this folder.
package main

import (
	"bufio"
	"encoding/json"
	"math/rand"
	"os"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"
)

type object = map[string]any

var out = bufio.NewWriter(os.Stdout)

func print(row object) {
	text, _ := json.Marshal(row)
	out.Write(append(text, '\n'))
}

func step(f func() semver.Version) (text string) {
	defer func() {
		if recover() != nil {
			text = ""
		}
	}()
	v := f()
	return v.Original()
}

func describe(v *semver.Version, err error) any {
	if err != nil {
		return err.Error()
	}
	next := []string{step(v.IncPatch), step(v.IncMinor), step(v.IncMajor)}
	return []any{v.String(), v.Original(), v.Prerelease(), v.Metadata(), next}
}

func versionRow(text string) {
	print(object{"version": text, "lenient": describe(semver.NewVersion(text)), "strict": describe(semver.StrictNewVersion(text))})
}

func constraintRow(text string, versions []*semver.Version) {
	c, err := semver.NewConstraint(text)
	if err != nil {
		print(object{"constraint": text, "error": err.Error()})
		return
	}
	open, _ := semver.NewConstraint(text)
	open.IncludePrerelease = true
	verdicts := []any{}
	for _, v := range versions {
		_, errs := c.Validate(v)
		reasons := []string{}
		for _, e := range errs {
			reasons = append(reasons, e.Error())
		}
		verdicts = append(verdicts, []any{v.Original(), open.Check(v), reasons})
	}
	print(object{"constraint": text, "string": c.String(), "verdicts": verdicts})
}

func lines(path string) []string {
	text, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

func pick(list ...string) string { return list[rand.Intn(len(list))] }

func part() string { return pick("0", "1", "2", "3", "10", "x", "*", "X", "00", "|", "1x") }

func randomVersion(wild bool) string {
	num := func() string {
		if wild && rand.Intn(3) == 0 {
			return part()
		}
		return pick("0", "0", "1", "2", "3", "10")
	}
	v := pick("", "", "", "v") + num()
	for i := rand.Intn(4); i > 0; i-- {
		v += "." + num()
	}
	if rand.Intn(3) == 0 {
		v += "-" + pick("0", "1", "alpha", "alpha.1", "beta.2", "rc-1", "01", "a..b", "")
	}
	if rand.Intn(6) == 0 {
		v += "+" + pick("m", "1.2", "01", "")
	}
	return v
}

func randomConstraint() string {
	ops := []string{"", "", "=", "!=", ">", "<", ">=", "=>", "<=", "=<", "~", "~>", "^", "=="}
	c := ""
	for i := rand.Intn(3); i >= 0; i-- {
		c += pick("", "", " ") + pick(ops...) + pick("", "", " ", "\t") + randomVersion(true)
		if i > 0 {
			c += pick(" ", ", ", ",", " || ", "||", " - ", " -", "- ", "  ", "|", " - ")
		}
	}
	return c + pick("", "", " ")
}

func main() {
	defer out.Flush()
	versions := []*semver.Version{}
	add := func(text string) {
		if v, err := semver.NewVersion(text); err == nil {
			versions = append(versions, v)
		}
	}
	if len(os.Args) == 3 && os.Args[1] == "random" {
		n, _ := strconv.Atoi(os.Args[2])
		for i := 0; i < 40; i++ {
			add(randomVersion(false))
		}
		for i := 0; i < n; i++ {
			versionRow(randomVersion(true))
			constraintRow(randomConstraint(), versions[:20])
		}
	} else {
		for _, text := range lines("../versions.txt") {
			versionRow(text)
		}
		versionRow(strings.Repeat("1", 257))
		for _, text := range []string{"0.0.0", "0.0.3", "0.2.3", "0.2.5", "1.0.0", "1.2.3", "1.2.4", "1.3.0", "1.2.3-alpha.2", "1.2.3-alpha.10", "1.9.0-rc.1", "2.0.0", "2.3.9", "4.1.0", "1.2.3+meta"} {
			add(text)
		}
		for _, text := range lines("../constraints.txt") {
			constraintRow(text, versions)
		}
		for _, text := range lines("../versions.txt") {
			add(text)
		}
	}
	for _, a := range versions {
		for _, b := range versions {
			print(object{"left": a.Original(), "right": b.Original(), "order": a.Compare(b)})
		}
	}
}
