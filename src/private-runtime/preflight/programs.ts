import { ELF_HEAD_BYTES, parseElf } from "../elf.ts";
import { errorMessage } from "../../base/errors.ts";
import { directoryOf, missingPackages, missingTools } from "../programs.ts";
import type { findPrograms, ProgramName, Programs } from "../programs.ts";
import { failed, oneLine, passed, readText } from "./check.ts";
import type { Check, CheckContext } from "./check.ts";

/** Names what is missing: a check each, with what to install. */
export async function checkPrograms(
  { files }: CheckContext,
  found: Awaited<ReturnType<typeof findPrograms>>,
): Promise<readonly Check[]> {
  const name = "programs";
  const isDebian = isDebianLike((await readText(files, "/etc/os-release")) ?? "");
  if ("missing" in found) {
    return missingPackages(found.missing, isDebian).map(({ programs, advice }) => {
      return failed(name, `missing: ${programs.map(programWords).join(", ")}`, advice);
    });
  }
  const unusable = await nonStaticPrograms({ files }, found.programs);
  if (unusable.length > 0) {
    return missingPackages(unusable, isDebian).map(({ programs, advice }) => {
      const paths = programs.map((program) => found.programs[program]).join(", ");
      return failed(name, `not a statically linked program: ${paths}`, advice);
    });
  }
  return [passed(name, `containerd is ${found.programs.containerd}, runc is ${found.programs.runc}`)];
}

/** Names what podwright itself calls and misses; nothing when nothing is missing. */
export async function checkTools({ files, searchPath }: CheckContext): Promise<readonly Check[]> {
  const missing = await missingTools(files, searchPath);
  if (missing.length === 0) return [];
  const isDebian = isDebianLike((await readText(files, "/etc/os-release")) ?? "");
  return missingPackages(missing, isDebian).map(({ programs, advice }) => {
    return failed("programs", `missing: ${programs.join(", ")}`, advice);
  });
}

/** For a command that could not be started: which program PATH lacks. Undefined for any other error. */
export async function notInPath({ files, searchPath }: CheckContext, error: unknown): Promise<Check | undefined> {
  const program = /\bspawn (\S+) ENOENT\b/u.exec(errorMessage(error))?.[1];
  if (program === undefined) return undefined;
  const directory = await directoryOf(files, program, searchPath);
  const remedy = directory === undefined ? `install ${program}` : `add ${directory} to PATH`;
  return failed("programs", `not in PATH: ${program}`, remedy);
}

function programWords(program: ProgramName): string {
  return program === "cniPlugins" ? "CNI plugins" : program;
}

/** Debian and what derives from it (os-release(5)). */
export function isDebianLike(osRelease: string): boolean {
  return /^ID(?:_LIKE)?=.*\b(?:debian|ubuntu)\b/m.test(osRelease);
}

/** The pause and demo images hold these programs and no library. */
async function nonStaticPrograms({ files }: Pick<CheckContext, "files">, programs: Programs): Promise<ProgramName[]> {
  const unusable: ProgramName[] = [];
  for (const name of ["catatonit", "busybox"] as const) {
    const program = parseElf(await files.readRange(programs[name], 0, ELF_HEAD_BYTES));
    if (program?.static !== true || program.architecture === undefined) unusable.push(name);
  }
  return unusable;
}

const IPTABLES_TIMEOUT_MS = 30_000;

/** Asks iptables for the tables that CNI writes to. The second result: whether the host drops what it forwards. */
export async function checkIptables(
  { processes, signal }: CheckContext,
  { iptables }: Programs,
): Promise<{ readonly check: Check; readonly dropsForwarded: boolean }> {
  const name = "iptables";
  const options = { timeoutMs: IPTABLES_TIMEOUT_MS, ...(signal && { signal }) };
  const nat = await processes.run(iptables, ["-w", "10", "-t", "nat", "-S", "POSTROUTING"], options);
  const forward = await processes.run(iptables, ["-w", "10", "-S", "FORWARD"], options);
  const broken = [nat, forward].find(({ exitCode }) => exitCode !== 0);
  if (broken === undefined) {
    return { check: passed(name, "works"), dropsForwarded: /^-P FORWARD DROP$/m.test(forward.stdout) };
  }
  const remedy =
    "load the kernel's modules (modprobe iptable_nat nf_nat), or switch: update-alternatives --config iptables";
  return { check: failed(name, `does not work: ${oneLine(broken.stderr)}`, remedy), dropsForwarded: false };
}
