import { basename, resolve } from "node:path/posix";
import { errorMessage, ExitCode, PodwrightError } from "../base/errors.ts";
import { decodeCredentialProviders } from "../config/credential-providers.ts";
import type { NodeFlagValues } from "../config/flags.ts";
import type { CredentialPlugins } from "../images/make-images.ts";
import { systemHashing } from "../linux/files/hashing.ts";
import type { Files } from "../ports/files.ts";

const maxConfigBytes = 10 * 1024 * 1024;
const executable = 0o111;

/**
 * The credential provider plugins of the flags; undefined: none.
 * @throws PodwrightError for an invalid configuration, or a missing executable
 */
export async function credentialPlugins(
  files: Files,
  { imageCredentialProviderConfig: config = "", imageCredentialProviderBinDir: bin = "" }: NodeFlagValues,
): Promise<CredentialPlugins | undefined> {
  if (config === "" && bin === "") return undefined;
  if (config === "" || bin === "") {
    throw new PodwrightError(ExitCode.badInput, "a credential provider flag is missing", {
      remedy: "set both --image-credential-provider-config and --image-credential-provider-bin-dir",
    });
  }
  const directory = resolve(process.cwd(), bin);
  if ((await files.stat(directory))?.type !== "directory") {
    throw new PodwrightError(ExitCode.badInput, `plugin binary directory ${directory} did not exist`);
  }
  const read = await configFiles(files, resolve(process.cwd(), config));
  const providers = decodeCredentialProviders(read);
  for (const { name } of providers) {
    const path = `${directory}/${name}`;
    const info = await files.stat(await files.realPath(path).catch(() => path));
    if (info?.type !== "file" || (info.mode & executable) === 0) {
      throw new PodwrightError(ExitCode.badInput, `plugin binary executable ${path} did not exist`, {
        remedy: "install the executable there",
      });
    }
  }
  return { providers, directory, configHash: hashOf(read.map(({ bytes }) => bytes)) };
}

/** As in upstream's metric, to compare nodes: each file's length, as 8 bytes, and content. */
function hashOf(contents: readonly Uint8Array[]): string {
  const parts = contents.flatMap((bytes) => {
    const length = Buffer.alloc(8);
    length.writeBigUInt64BE(BigInt(bytes.length));
    return [length, bytes];
  });
  return `sha256:${systemHashing.sha256(Buffer.concat(parts))}`;
}

/** One file, or the files of a directory in the order of their names. */
async function configFiles(files: Files, path: string): Promise<{ path: string; bytes: Uint8Array }[]> {
  try {
    const info = await files.stat(await files.realPath(path));
    const entries = info?.type === "directory" ? await files.list(path) : undefined;
    const names = entries?.filter(({ name, type }) => type !== "directory" && /\.(json|ya?ml)$/u.test(name));
    if (names?.length === 0) throw new Error("no configuration files found in the directory");
    const paths = names?.map(({ name }) => `${path}/${basename(name)}`).toSorted() ?? [path];
    return await Promise.all(
      paths.map(async (each) => ({ path: each, bytes: await files.read(each, maxConfigBytes) })),
    );
  } catch (error) {
    throw new PodwrightError(
      ExitCode.badInput,
      `cannot read the credential provider configuration ${path}: ${errorMessage(error)}`,
      { cause: error },
    );
  }
}
