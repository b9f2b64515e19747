import { isTest, lineAt, type SourceFile, type Violation } from "./source-file.ts";

/** Log viewers truncate longer messages, and the excess mostly belongs in a field. */
const longestMessage = 80;

const logCall = /\b(?:log|logger)\.(?:debug|info|warn|error)\(\s*/gi;

/** A log message is one constant, searchable clause: variable parts are fields. */
export function logMessages(file: SourceFile): Violation[] {
  if (isTest(file.path) || file.path.startsWith("src/sim/")) return [];
  return [...file.text.matchAll(logCall)].flatMap((call) => {
    const start = call.index + call[0].length;
    const line = lineAt(file.text, start);
    const problems = messageProblems(file.text, file.text.slice(start));
    return problems.map(([rule, remedy]) => ({ path: file.path, line, rule: `log message: ${rule}`, remedy }));
  });
}

const valueRemedy = "make the message constant and give the value as a field: log.warn(message, { value })";

/** @param rest what follows the opening bracket of the call */
function messageProblems(text: string, rest: string): [rule: string, remedy: string][] {
  const name = /^([a-z]\w*)\s*[,)]/.exec(rest)?.[1];
  if (rest.startsWith("`") || (name !== undefined && isTemplate(text, name))) return [["holds a value", valueRemedy]];
  const message = /^"((?:[^"\\]|\\.)*)"/.exec(rest)?.[1];
  if (message === undefined) return [];
  const problems: [string, string][] = [];
  if (message.length > longestMessage) {
    problems.push([`has ${message.length} characters`, `say it in ${longestMessage}, with details as fields`]);
  }
  if (/^(?!I\/O)[A-Z][a-z]/.test(message)) problems.push(["begins with a capital", "begin with a small letter"]);
  if (message.endsWith(".")) problems.push(["ends with a full stop", "leave it out: a message is a clause"]);
  return problems;
}

function isTemplate(text: string, name: string): boolean {
  return new RegExp(`\\bconst ${name} =\\s*(?:[^;]*[?:]\\s*)?\`[^\`]*\\$\\{`).test(text);
}

/** Phrases that read as translated, with the field's terms. */
const phrases: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/\bnobody tells\b/gi, "say what is not reported: OOM kills will not be reported"],
  [
    /\b(?:is|are|was|were) told (?:that|of|how|what|which|when|whether|so|to|with|at|all)\b/gi,
    "name the verb: receives, learns, reports",
  ],
  [/(?<!const )\bwhat of\b/gi, "name the noun: which part of"],
  [/\b(?:goes|go|went) on (?:\w+ing|as|where|with|without)\b/gi, "keeps running, continues"],
  [/\bgot on with\b/gi, "progressed"],
  [/\bmakes? [\w' ]{1,30} anew\b/gi, "recreates, reopens, repeats"],
  [/\bmade anew\b/gi, "recreated"],
  [/\blets? go of\b/gi, "releases, disconnects"],
  [/\blooked after\b/gi, "managed"],
  [/\bsays how it is\b/gi, "reports its status"],
  [/\bin vain\b/gi, "without success; failed writes"],
  [/\bnobody (?:wants|asks for)\b/gi, "orphaned; no source has it"],
  [/\bwants? nothing\b/gi, "say what counts"],
  [/\bthat there is not\b/gi, "unknown, missing"],
  [/\bled? to no address\b|\bleads to no address\b/gi, "cannot be resolved"],
  [/\bis none of\b/gi, "is not a"],
  [/\bof its liking\b/gi, "any"],
  [/\bfor want of\b/gi, "out of memory; without"],
  [/\bnow and then\b/gi, "periodically, sometimes"],
  [/\bcan't be had\b/gi, "cannot get"],
  [/\b(?:is|are|was|were) let in\b/gi, "is admitted"],
  [/\b(?:is|are) warned of\b/gi, "is a warning"],
  [/\bcounts? for nothing\b/gi, "is ignored"],
  [/\bin silence\b/gi, "silently"],
  [/\bfor ever\b/gi, "forever"],
  [/\bby and by\b/gi, "later"],
  [/\b(?:less|more) than nothing\b/gi, "negative, positive"],
  [/\bhears? of\b/gi, "learns of, receives"],
  [/\bstays? said\b/gi, "stays reported"],
  [/\b(?:is|are|was|were) taken back\b/gi, "is reverted, unpublished, unstaged"],
  [/\b(?:earlier|next) (?:life|lives)\b/gi, "earlier run, next run"],
  [/\b(?:lies|lie|lay) on the disk\b/gi, "is on disk"],
  [/\bby what lies\b/gi, "from: torn down from the state on disk"],
  [/\bfor sure\b/gi, "definitely"],
  [/\bonce a node\b/gi, "once per node"],
  [/\bmade good\b/gi, "repaired, corrected"],
  [/\b(?:holds?|held) up\b/gi, "delays, blocks"],
  [/\bwithout a word\b/gi, "silently, without a message"],
  [/\bpass(?:ed|es) over\b/gi, "ignored, skipped"],
  [/\btold of\b/gi, "receives, is called with"],
  [/\b(?:read|asked|written|dated|taken|begins?|began|started|registers?|comes?) anew\b/gi, "again; reread, restarted"],
  [/\b(?:called|calls) off\b/gi, "canceled"],
  [/\bas it is configured\b/gi, "as configured"],
  [/\b(?:has|have|had) (?:no|a) say\b/gi, "has no effect"],
  [/\btaken for (?:unwanted|gone|none|done|granted)\b/gi, "treated as, counts as"],
  [/\bsays? of (?:itself|themselves)\b/gi, "reports; its own description"],
  [/\bbeside everything else\b/gi, "in the background"],
  [/\bto be had\b/gi, "available"],
  [/\b(?:ends?|ended) the start\b/gi, "prevents the start"],
  [/\bg(?:ives?|ave) way to\b/gi, "yields to"],
  [/\bmost special\b/gi, "most specific"],
  [/\bwished\b/gi, "requested"],
];

/** Finds {@link phrases} in texts and comments. */
export function plainWords({ path, text }: SourceFile): Violation[] {
  return phrases.flatMap(([pattern, instead]) =>
    [...text.matchAll(pattern)].map((match) => ({
      path,
      line: lineAt(text, match.index),
      rule: `plain words: “${match[0]}”`,
      remedy: `as in the field: ${instead}`,
    })),
  );
}
