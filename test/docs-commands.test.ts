import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { type Command, CommanderError } from "commander";
import { buildProgram } from "../src/cli/program.ts";
import { Terminal } from "../src/cli/terminal.ts";
import { parseKubeletFlags } from "../src/config/flags.ts";
import { type DocumentedCommand, documentedCommands, printedCommands } from "./support/documented-commands.ts";

const root = join(import.meta.dirname, "..");
const documents = ["README.md", "CONTRIBUTING.md", "SCOPE.md", "SECURITY.md", ...globSync("docs/*.md", { cwd: root })];
const silent = { write: () => true };

/** The program, whose commands do nothing once their command line was accepted. */
function idleProgram(): Command {
  const program = buildProgram(new Terminal(silent, silent, {}), () => {});
  for (const command of program.commands) command.action(() => {});
  return program;
}

/** What is wrong with the command line; undefined: the program accepts it. */
async function problemWith({
  words,
  isInline,
}: Pick<DocumentedCommand, "words" | "isInline">): Promise<string | undefined> {
  const [command, ...rest] = words;
  try {
    if (command === "kubelet") parseKubeletFlags(rest);
    else await idleProgram().parseAsync([...words], { from: "user" });
    return undefined;
  } catch (error) {
    if (!(error instanceof CommanderError)) return String(error);
    const { code, message } = error;
    if (code === "commander.helpDisplayed" || code === "commander.help") return undefined;
    if (isInline && /^commander\.(?:missing|optionMissing)/u.test(code)) return undefined;
    // A value that the reader has to put in.
    if (code === "commander.invalidArgument" && /argument '[A-Z]+' is invalid/u.test(message)) return undefined;
    return message;
  }
}

for (const path of documents) {
  const commands = documentedCommands(readFileSync(join(root, path), "utf8"));
  if (commands.length === 0) continue;
  test(`every command in ${path} is one that podwright accepts`, async () => {
    for (const command of commands) {
      const place = `${path}:${command.line}: podwright ${command.words.join(" ")}`;
      assert.equal(await problemWith(command), undefined, place);
      const examples = command.words.filter((word) => /^examples\/\S/u.test(word));
      for (const example of examples) assert.ok(existsSync(join(root, example)), `${place}: there is no ${example}`);
    }
  });
}

test("every command in the heads of the examples is one that podwright accepts", async () => {
  for (const path of globSync("examples/*.yaml", { cwd: root })) {
    const [head = ""] = readFileSync(join(root, path), "utf8").split(/^apiVersion:/mu);
    // An explanation follows after blanks.
    const commands = documentedCommands(head.replaceAll(/^# {3}(\S.*?)(?: {2,}.*)?$/gmu, "    $1"));
    assert.ok(commands.length > 0, path);
    for (const command of commands) {
      assert.equal(await problemWith(command), undefined, `${path}: podwright ${command.words.join(" ")}`);
    }
  }
});

test("every example in --help is one that podwright accepts", async () => {
  const program = idleProgram();
  let count = 0;
  for (const command of [program, ...program.commands]) {
    let help = "";
    command.configureOutput({ writeOut: (text) => (help += text) });
    command.outputHelp();
    // Help indents its examples by two, and explains some of them after more blanks.
    const markdown = help.replaceAll(/^ {2}(podwright \S.*?)(?: {3,}.*)?$/gmu, "    $1");
    for (const example of documentedCommands(markdown)) {
      count++;
      assert.equal(await problemWith(example), undefined, `podwright ${example.words.join(" ")}`);
    }
  }
  assert.ok(count > 20, `${count} examples`);
});

test("commands are found in blocks, fences and text, without comments, prompts and what other programs do", () => {
  const markdown = `
    podwright run web.yaml     # stays
    podwright run --detach web.yaml && podwright ps | head
    podwright kubelet --config a \\
      --kubeconfig b
    kubectl get pods

\`podwright exec POD -- CMD…\`, \`podwright completion bash|zsh\`, \`podwright.service\`, \`podwright 0.1.0 (Node.js 26)\`

\`\`\`
$ podwright why web
podwright is no command here
\`\`\`
`;
  const found = documentedCommands(markdown).map(({ line, words, isInline }) => [line, words.join(" "), isInline]);
  assert.deepEqual(found, [
    [2, "run web.yaml", false],
    [3, "run --detach web.yaml", false],
    [3, "ps", false],
    [4, "kubelet --config a --kubeconfig b", false],
    [8, "exec POD -- CMD", true],
    [8, "completion bash", true],
    [11, "why web", false],
  ]);
});

test("the commands of a section are those of its blocks, in order, whole and without comments", () => {
  const markdown = `
# One

    podwright doctor     # first

## Two

Text with \`podwright ps\`.

    podwright kubelet --config a \\
      --kubeconfig b
    # only a comment
    ln -sf /a /b && kubectl get node   # Ready

## Three

    podwright leave
`;
  assert.deepEqual(printedCommands(markdown, "One"), ["podwright doctor"]);
  assert.deepEqual(printedCommands(markdown, "Two"), [
    "podwright kubelet --config a --kubeconfig b",
    "ln -sf /a /b && kubectl get node",
  ]);
  assert.deepEqual(printedCommands(markdown, "None"), []);
});

test("commands, options and values that do not exist are found, in either kind of text", async () => {
  for (const [line, problem] of [
    ["nonsense", /unknown command 'nonsense'/u],
    ["run --nonsense web.yaml", /unknown option '--nonsense'/u],
    ["run --wait soon web.yaml", /'soon' is invalid/u],
    ["why web db", /too many arguments/u],
    ["stop --grace soon web", /'soon' is invalid/u],
    ["kubelet --nonsense", /unknown flag: --nonsense/u],
  ] as const) {
    for (const isInline of [false, true]) {
      assert.match((await problemWith({ words: line.split(" "), isInline })) ?? "", problem);
    }
  }
  assert.match((await problemWith({ words: ["why"], isInline: false })) ?? "", /missing required argument/u);
  assert.equal(await problemWith({ words: ["why"], isInline: true }), undefined);
  assert.equal(await problemWith({ words: ["stop", "--grace", "S", "POD"], isInline: true }), undefined);
});

test("docs/cli.md has every request of the engine's socket, and no other", () => {
  const source = readFileSync(join(root, "src/server/routes.ts"), "utf8");
  const routes = [...source.matchAll(/route\("(\w+)", "([^"]+)"/gu)].map(([, method, path]) => `${method} ${path}`);
  const table = readFileSync(join(root, "docs/cli.md"), "utf8");
  const requests = [...table.matchAll(/`(GET|POST) (\/v1\/[^`?]*)/gu)].map(([, method, path = ""]) => {
    return `${method} ${path.trim().replaceAll(/\{[^}]*\}/gu, "*")}`;
  });
  assert.deepEqual(requests.toSorted(), routes.toSorted());
});
