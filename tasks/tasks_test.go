package tasks

import (
	"bytes"
	"compress/gzip"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// write makes a file in a folder of its own.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
	return path
}

// zipped packs a text.
func zipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.String()
}

const (
	arcLines = `{"choices": ["red", "a blue one"], "query": "Question: Which?", "gold": 1}` + "\n\n" + `{"choices": ["é", "b", "c"], "query": "Question: What?\n", "gold": 0}` + "\n"

	siqaLines = `{"doc": {"context": "Ann ran.", "question": "Why?", "answerA": "fun", "answerB": "fear", "answerC": "rain", "label": "3"}, "request": {"context": "x"}, "idx": 0, "doc_id": 0}
{"doc": {"context": "Ann ran.", "question": "Why?", "answerA": "fun", "answerB": "fear", "answerC": "rain", "label": "3"}, "idx": 1, "doc_id": 0}
{"doc": {"context": "Bob sat.", "question": "How?", "answerA": "well", "answerB": "ill", "answerC": "so", "label": "1"}, "idx": 0, "doc_id": 1}
{"doc": {"context": "Ann ran.", "question": "Why?", "answerA": "fun", "answerB": "fear", "answerC": "rain", "label": "3"}, "idx": 0, "doc_id": 1000000}
`
	winoLine = `{"doc": {"sentence": "The cup fell off the shelf as the _ was tilted.", "option1": "cup", "option2": "shelf", "answer": "2"}, "idx": 0, "doc_id": 0}` + "\n"

	hellaLines = `Cooking [header] Eggs [title] Boil them.  a man
1
stirs [step] the pot.
eats  it.
runs.
sings.
Health: How to rest. Lie down. Breathe.
0
a.
b.
c.
d.
`
)

// bzip2Eggs is "Cook: Eggs", 0, a, b, c, d, each on a line, by bzip2 1.0.8.
var bzip2Eggs = []byte{
	0x42, 0x5a, 0x68, 0x39, 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, 0x6a, 0xc2, 0xd5, 0xbf, 0x00, 0x00, 0x04, 0xdd, 0x80, 0x00,
	0x10, 0x40, 0x00, 0x40, 0x10, 0x0a, 0x00, 0x3c, 0x88, 0x88, 0x00, 0x20, 0x00, 0x21, 0xa1, 0x19, 0x31, 0x36, 0x84, 0x00,
	0x00, 0x37, 0xd9, 0xab, 0x9f, 0x62, 0xd2, 0x81, 0xfc, 0x20, 0xb6, 0x8b, 0xb9, 0x22, 0x9c, 0x28, 0x48, 0x35, 0x61, 0x6a,
	0xdf, 0x80,
}

func TestFormatsBecomeRequests(t *testing.T) {
	type want struct{ context, continuation string }
	for _, c := range []struct {
		file, text, name string
		metric           Metric
		norm             bool
		gold             []int
		requests         []want
	}{
		{"arc_easy_test.jsonl", "\uFEFF" + strings.ReplaceAll(arcLines, "\n\n", "\r\n\r\n"), "arc_easy", AccNorm, true, []int{1, 0}, []want{
			{"Question: Which?\nAnswer:", " red"}, {"Question: Which?\nAnswer:", " a blue one"},
			{"Question: What?\nAnswer:", " é"}, {"Question: What?\nAnswer:", " b"}, {"Question: What?\nAnswer:", " c"}}},
		{"socialiqa.jsonl.gz", zipped(t, siqaLines), "siqa", Acc, false, []int{2, 0}, []want{
			{"Q: Ann ran. Why?\nA:", " fun"}, {"Q: Ann ran. Why?\nA:", " fear"}, {"Q: Ann ran. Why?\nA:", " rain"},
			{"Q: Bob sat. How?\nA:", " well"}, {"Q: Bob sat. How?\nA:", " ill"}, {"Q: Bob sat. How?\nA:", " so"}}},
		{"winogrande.jsonl", winoLine, "winogrande", Acc, false, []int{1}, []want{
			{"The cup fell off the shelf as the cup", " was tilted."}, {"The cup fell off the shelf as the shelf", " was tilted."}}},
		{"HellaSwag-val.txt", hellaLines, "hellaswag", AccNorm, true, []int{1, 0}, []want{
			{"Cooking Eggs. Boil them. A man", " stirs the pot."}, {"Cooking Eggs. Boil them. A man", " eats it."}, {"Cooking Eggs. Boil them. A man", " runs."}, {"Cooking Eggs. Boil them. A man", " sings."},
			{"Health: How to rest. Lie down. Breathe.", " a."}, {"Health: How to rest. Lie down. Breathe.", " b."}, {"Health: How to rest. Lie down. Breathe.", " c."}, {"Health: How to rest. Lie down. Breathe.", " d."}}},
		{"mine.json", `{"context": "Sky:", "choices": ["blue", "green"], "gold": 0}`, "mine", Acc, true, []int{0}, []want{{"Sky:", " blue"}, {"Sky:", " green"}}},
		{"piqa.json", `{"context": "Sky:", "choices": ["blue", "green"], "gold": 0}`, "piqa", AccNorm, true, []int{0}, []want{{"Sky:", " blue"}, {"Sky:", " green"}}},
		{"pairs.json", `{"contexts": ["A", "B"], "choices": ["x", "x"], "gold": 1}`, "pairs", Acc, false, []int{1}, []want{{"A", " x"}, {"B", " x"}}},
	} {
		task, err := Read(write(t, c.file, c.text))
		require.NoError(t, err, c.file)
		require.Equal(t, c.name, task.Name)
		require.Equal(t, c.metric, task.Metric, c.file)
		require.Equal(t, c.norm, task.Norm, c.file)
		var got []want
		var gold []int
		for _, r := range task.Requests() {
			got = append(got, want{r.Context, r.Continuation})
		}
		for _, d := range task.Documents {
			gold = append(gold, d.Gold)
		}
		require.Equal(t, c.requests, got, c.file)
		require.Equal(t, c.gold, gold, c.file)
	}
}

func TestPackedFilesShowInTheirFirstBytes(t *testing.T) {
	plain, err := Read(write(t, "h.txt", "Cook: Eggs\n0\na\nb\nc\nd\n"))
	require.NoError(t, err)
	packed, err := Read(write(t, "h", string(bzip2Eggs)))
	require.NoError(t, err)
	require.Equal(t, plain.Documents, packed.Documents)
	zip, err := Read(write(t, "h.bz2", zipped(t, "Cook: Eggs\n0\na\nb\nc\nd\n")))
	require.NoError(t, err)
	require.Equal(t, plain.Documents, zip.Documents)
}

func TestALimitTakesTheFirstDocuments(t *testing.T) {
	path := write(t, "arc_easy.jsonl", arcLines)
	for _, c := range []struct{ limit, want int }{{0, 2}, {1, 1}, {2, 2}, {9, 2}} {
		all, err := Load([]string{path}, c.limit)
		require.NoError(t, err)
		require.Len(t, all[0].Documents, c.want)
		require.Equal(t, 1, all[0].Documents[0].Line)
	}
	_, err := Load([]string{path, write(t, "arc-easy_test.json", arcLines)}, 1)
	require.ErrorContains(t, err, "are both the task arc_easy: leave one out, or give it another file name")
	bad := write(t, "bad.jsonl", arcLines+"{")
	_, err = Load([]string{bad}, 1)
	require.ErrorContains(t, err, "bad.jsonl:4: ", "lines after the limit are checked too")
}

func TestErrorsNameTheFileAndTheLine(t *testing.T) {
	good := `{"context": "a", "choices": ["b", "c"], "gold": 0}` + "\n"
	packed := zipped(t, strings.Repeat(good, 2)+strings.Repeat(`{"context": "`+strings.Repeat("abc", 40)+`", "choices": ["b", "c"], "gold": 0}`+"\n", 500))
	broken := []byte(packed)
	broken[len(broken)-7] ^= 0xff // of the checksum
	for _, c := range []struct{ text, want string }{
		{"", "x has no document: it is empty"},
		{" \n\n", "x has no document: it is empty"},
		{good + `{"context": "a", "choices": ["b", "c"], "gold": 2}`, "x:2: gold is 2, and the choices are 0 to 1"},
		{good + `{"context": "a", "choices": ["b", "c"], "gold": -1}`, "x:2: gold is -1, and the choices are 0 to 1"},
		{good + `{"context": "a", "choices": ["b", "c"]}`, "x:2: there is no gold: give the number of the right choice, from 0"},
		{good + `{"context": "a", "choices": ["b", "c"], "gold": 0.5}`, "x:2: the line is no JSON of a document"},
		{good + `{"context": "a", "choices": ["b"], "gold": 0}`, "x:2: there is one choice: give at least two"},
		{good + `{"context": "a", "gold": 0}`, "x:2: there are no choices: give at least two"},
		{good + `{"context": "a", "choices": ["b", " "], "gold": 0}`, "x:2: choice 2 is empty: give it a text"},
		{good + `{"contexts": ["a", "b", "c"], "choices": ["b", "c"], "gold": 0}`, "x:2: there are 3 contexts for 2 choices: give one for all, or one for each"},
		{good + `{"context": "a", "contexts": ["a", "b"], "choices": ["b", "c"], "gold": 0}`, "x:2: there are both context and contexts: leave one out"},
		{good + `{"query": "a", "choices": ["b", "c"], "gold": 0}`, "x:2: the line has query, choices and gold, those before it context, choices and gold: keep to one format a file"},
		{good + `{"text": "a"}`, "x:2: the line has neither query, context, contexts nor a known doc"},
		{good + `{"context": `, "x:2: the line is no JSON of a document"},
		{good + "{\"context\": \"\xff\"}", "x:2: the line is not UTF-8: convert the file to UTF-8"},
		{strings.Replace(winoLine, " _ ", " ", 1), "x:1: the sentence has no _ for the options"},
		{strings.Replace(winoLine, `"2"`, `"two"`, 1), `x:1: answer is "two": give the number of the right choice, from 1`},
		{strings.Replace(winoLine, `"2"`, `"3"`, 1), `x:1: gold is 2, and the choices are 0 to 1`},
		{strings.Replace(siqaLines, `"3"`, `""`, 1), `x:1: label is "": give the number of the right choice, from 1`},
		{winoLine + strings.Replace(winoLine, `, "doc_id": 0`, "", 1), "x:2: there is no doc_id: give each document its number"},
		{strings.ReplaceAll(winoLine, `"doc_id": 0`, `"doc_id": 1000000`), "x has no document: each of its lines is of a doc_id from 1000000"},
		{strings.TrimSuffix(hellaLines, "d.\n"), "x:7: the last document has 5 lines"},
		{strings.Replace(hellaLines, "\n0\n", "\nnone\n", 1), `x:8: "none" is not the number of an ending`},
		{strings.Replace(hellaLines, "\n0\n", "\n4\n", 1), `x:7: gold is 4, and the choices are 0 to 3`},
		{packed[:len(packed)/2], ": the gzip data can't be read: it is cut off: copy the file anew"},
		{packed[:5], "x:1: the gzip data can't be read: unexpected EOF: copy the file anew"},
		{string(broken), ": the gzip data can't be read: gzip: invalid checksum: copy the file anew"},
		{string(bzip2Eggs[:20]), "x:1: the bzip2 data can't be read: it is cut off: copy the file anew"},
	} {
		_, err := Read(write(t, "x", c.text))
		require.ErrorContains(t, err, c.want)
	}
	_, err := Read("")
	require.EqualError(t, err, "a task's path is empty: leave it out")
	_, err = Read(filepath.Join(t.TempDir(), "absent"))
	require.ErrorContains(t, err, "absent does not exist: give the path of a task's file")
	_, err = Read(t.TempDir())
	require.ErrorContains(t, err, "is not a file")
}

// plainScore is the scoring of one metric in its plainest form.
func plainScore(docs []Document, ll []float64, perCharacter bool) (mean, stderr float64) {
	var hits []float64
	for _, d := range docs {
		best, at := math.Inf(-1), -1
		for i, c := range d.Choices {
			x := ll[i]
			if perCharacter {
				x /= float64(len([]rune(c)))
			}
			if x > best {
				best, at = x, i
			}
		}
		ll = ll[len(d.Choices):]
		hit := 0.0
		if at == d.Gold {
			hit = 1
		}
		hits = append(hits, hit)
		mean += hit
	}
	n := float64(len(hits))
	mean /= n
	for _, h := range hits {
		stderr += (h - mean) * (h - mean)
	}
	return mean, math.Sqrt(stderr/(n-1)) / math.Sqrt(n)
}

func TestScoresAreThoseOfThePlainForm(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{2, 3, 17, 101} {
		task := Task{Name: "x", Metric: AccNorm, Norm: true}
		var ll []float64
		chance := 0.0
		for range n {
			k := 2 + random.IntN(4)
			d := Document{Contexts: []string{"c"}, Gold: random.IntN(k)}
			for range k {
				d.Choices = append(d.Choices, strings.Repeat("é", 1+random.IntN(9)))
				ll = append(ll, -float64(random.IntN(8))*math.Pow(10, float64(random.IntN(3)))) // ties, small and large ones
			}
			task.Documents = append(task.Documents, d)
			chance += 1 / float64(k)
		}
		r, err := task.Score(ll)
		require.NoError(t, err)
		acc, accErr := plainScore(task.Documents, ll, false)
		norm, normErr := plainScore(task.Documents, ll, true)
		require.InDelta(t, acc, r.Acc, 1e-15)
		require.InDelta(t, accErr, *r.AccStderr, 1e-14)
		require.InDelta(t, norm, *r.AccNorm, 1e-15)
		require.InDelta(t, normErr, *r.AccNormStderr, 1e-14)
		require.InDelta(t, chance/float64(n), r.Chance, 1e-14)
		require.Equal(t, *r.AccNorm, r.Main())
		require.Equal(t, n, r.N)
	}
}

func TestLengthsAreInCharacters(t *testing.T) {
	task := Task{Norm: true, Metric: AccNorm, Documents: []Document{{Contexts: []string{"c"}, Choices: []string{"ab", "ééé"}, Gold: 1}}}
	r, err := task.Score([]float64{-2, -2.9}) // in bytes the second would be 6 long too, and in its favour: -0.97 and -1 a character
	require.NoError(t, err)
	require.Zero(t, r.Acc)
	require.Equal(t, 1.0, *r.AccNorm)
	require.Nil(t, r.AccStderr, "one document has none")
	r, err = task.Score([]float64{-2, -3.1}) // -1.03 a character, and -0.52 a byte
	require.NoError(t, err)
	require.Zero(t, *r.AccNorm)
	require.Equal(t, 3, utf8.RuneCountInString("ééé"))
}

func TestAverageTakesEachTasksMetric(t *testing.T) {
	half, norm := 0.5, 0.75
	require.Equal(t, (0.75+0.25)/2, Average([]Result{{Acc: 0.5, AccNorm: &norm, Metric: AccNorm}, {Acc: 0.25, AccNorm: &half, Metric: Acc}}))
	require.True(t, math.IsNaN(Average(nil)))
}

func TestLogLikelihoodsThatAreNoNumbers(t *testing.T) {
	task := Task{File: "f", Documents: []Document{{Choices: []string{"a", "b"}, Line: 7}}}
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		_, err := task.Score([]float64{0, x})
		require.ErrorIs(t, err, ErrNotFinite)
		require.EqualError(t, err, "f:7: choice 2: a log-likelihood is not finite")
	}
	require.Panics(t, func() { _, _ = task.Score([]float64{0}) })
}
