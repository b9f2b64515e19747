import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { MemoryFiles } from "../sim/files.ts";
import { credentialPlugins } from "./credential-providers.ts";

/** JSON is also YAML, so one text works with any file name extension. */
const configOf = (name: string): string =>
  JSON.stringify({
    ...{ apiVersion: "kubelet.config.k8s.io/v1", kind: "CredentialProviderConfig" },
    providers: [
      {
        ...{ name, matchImages: ["*.io"], defaultCacheDuration: "1m" },
        apiVersion: "credentialprovider.kubelet.k8s.io/v1",
      },
    ],
  });

test("the hash of the configuration equals upstream's: over the files in order, each with its length", async () => {
  const files = new MemoryFiles(new ManualClock());
  const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
  for (const directory of ["/bin", "/config"]) await files.makeDirectory(directory, 0o755);
  for (const name of ["a", "b"]) await files.writeAtomic(`/bin/${name}`, bytes("#!"), 0o755);
  await files.writeAtomic("/config/2.json", bytes(configOf("b")), 0o644);
  await files.writeAtomic("/config/1.yaml", bytes(configOf("a")), 0o644);
  await files.writeAtomic("/config/README", bytes("not one of them"), 0o644);
  const hash = async (config: string): Promise<string | undefined> => {
    const flags = { imageCredentialProviderConfig: config, imageCredentialProviderBinDir: "/bin" };
    return (await credentialPlugins(files, flags))?.configHash;
  };
  assert.equal(await hash("/config/1.yaml"), "sha256:5c4439838e4102ed90526c3aa3bcfc01bae1b9e72fa0f2790673982ece23de69");
  assert.equal(await hash("/config"), "sha256:3d677824453427b4540bfc87154d028c0e42b8b3fe29695391645d0aa13ad171");
});
