package data

// The grammar of the built-in corpus. A story is one {story}.
//
// A rule is a list of alternatives between bars; "3*" before one gives it the weight 3 in place of 1. In an alternative, {name} is the rule of
// that name. {slot=list} draws an entry from a list, all alike, keeps it in the slot, and writes its name; {slot} writes the name again, and
// {slot.form} another form of the entry. A reference takes the space before it along, so that nothing at all may stand for it.
//
// Two rules keep the entropy exact, and tests hold the grammar to them. The first word of what is written tells which alternative was
// taken, so that a text has one derivation, and its probability is that of the choices in it. And what one reference writes ends where a word of
// BPE ends, so that the tokens of a text are those of its words.
var storyRules = map[string]string{
	"story": `{opening} {find} {meet} {answer} {plot} {feeling} {close}`,

	"opening": `4* One {weather} {day}, {child} {went} to the {place=place}.
		| Once upon a time, {child} lived by a {size} {place=place}.
		| 2* On a {weather} {day}, {child} {sang} by the {place=place}.`,
	"child":   `{hero=girl} | {hero=boy}`,
	"weather": `hot | cold | wet | fine | nice | bad | sad | long`,
	"day":     `2* day | night`,
	"went":    `went | came | ran | rode`,
	"size":    `big | small | tall | fine | nice | long | wet | new`,
	"color":   `red | blue | green | black | white | gray | gold | pink`,

	"find": `2* {hero.He} {saw} {thing} {where}.
		| 3* Soon {hero} {saw} {thing} {where}.`,
	"saw":    `saw | got | had | hid`,
	"thing":  `5* a {size} {color} {object=one} | 3* {number} {size} {color} {object=many}`,
	"number": `two | three | six | nine | ten`,
	"where":  `{by} a {size} {spot}`,
	"by":     `by | near | under | behind`,
	"spot":   `tree | bush | rock | log | wall | tent | box | bed | gate | cart`,

	"meet": `Then a {mood} {color} {friend=animal} {came}.`,
	"mood": `kind | shy | fat | bold | glad | sad | bad | mad | wet | sick | big | calm`,
	"came": `came by | ran up | sat down | got up | woke up`,

	"answer": `4* "{question} {asked} the {friend}. {reply} | 2* It {sang} {how}. | `,
	"question": `3* Can I {try} {object.it}?"
		| 2* {object.Is} {object.that} your {object}?"`,
	"try":   `see | hold | have | keep | use | take | hide`,
	"asked": `asked | said`,
	"reply": `3* "{yes}," said {hero}. | 2* {hero} {sang} {how}. | `,
	"yes":   `Yes | No | Sure | Wait | Well | Look`,
	"sang":  `sang | sat | ran | hid | slept | danced`,
	"how":   `again | too | now | all {day} | a lot | in bed`,

	"food": `buns | figs | pears | cakes | nuts | eggs | beans | pies`,

	"plot":  `{lose} | {share} | {trade} | {spoil} | {quest}`,
	"lose":  `But a {size} {color} {thief} took the {object}. The {friend} {went} {where} and got {object.it} back.`,
	"thief": `man | bird | wave | bat | rat | king`,

	"share": `They had fun with the {object} all {day}. The {friend} {sang} {how}.`,

	"trade": `The {friend} gave {number} {size} {food} for the {object}. {hero} {ate} them {how}.`,
	"ate":   `ate | had | hid | got`,

	"spoil": `Then {object.they} fell in the {mud}. "Oh no!" said {hero}. The {friend} got {object.it} out with a {size} {rope}.`,
	"mud":   `mud | well | lake | sea | sand`,
	"rope":  `rope | net | stick | log | fan | hand`,

	"quest": `So they took the {object} to a {mood} {owner=person}. "{yes}," said the {owner}, and gave them {number} {color} {food}.`,

	"feeling": `3* {hero} was {glad} and {hot}. | 2* "What a {weather} {day}!" said {hero}. | `,
	"glad":    `glad | sad | shy | bold | mad | calm`,
	"hot":     `hot | cold | wet | sick | fat | well`,

	"close": `3* They {went} home and {ate} {number} {size} {food}.
		| 2* From that day on, {hero} and the {friend} {sang} every {day}.
		| 2* That night, {hero.he} {saw} the {object} {where}.`,
}

// storyList is a table of entries: its first column is the name, forms names the others.
type storyList struct {
	forms string // of each entry, in its columns
	same  string // form=text, for all entries alike
	rows  string
}

var storyLists = map[string]storyList{
	"girl": {
		same: "He=She he=she",
		rows: "Jan | Nan | Jen | Jill | Kay | Pam | Kim | Sue",
	},
	"boy": {
		same: "He=He he=he",
		rows: "Dan | Ben | Bill | Ray | Nick | Ted | Sam | Tim",
	},
	"place": {
		rows: "sea | hill | lake | mill | barn | park | wood | cave | town | inn",
	},
	"one": {
		same: "it=it they=it Is=Is that=that",
		rows: "kite | ball | bell | book | boat | coat | cap | hat | map | fan",
	},
	"many": {
		same: "it=them they=they Is=Are that=those",
		rows: "keys | pots | pens | mugs | rings | socks",
	},
	"animal": {
		rows: "fox | cat | dog | hen | pig | cow | bear | duck | frog | goat | rat | bat",
	},
	"person": {
		rows: "king | queen | cook | man | lad | dad",
	},
}
