import { basename } from "node:path/posix";

const manifest = /\.(?:ya?ml|json|manifest)$/iu;
const manifestAndMore = /\.(?:ya?ml|json|manifest)(?![a-z])./iu;
const backupEnding =
  /(?:~|\.(?:\d+|bak|backup|copy|disabled|dpkg-\w+|off|old|orig|rej|rpm(?:new|orig|save)|saved?|sw[op]|te?mp|ucf-\w+))$/iu;
const backupWord = /(?:^|[._-])(?:backup|bak|copy|old|orig|saved?)[._-]?\d*\.[a-z]+$/iu;

/**
 * Whether a manifest file is probably a copy of another (`etcd.yaml.bak`, `etcd.yaml~`, `etcd.yaml.2026-01-02`,
 * `etcd-old.yaml`). The Go kubelet and podwright read it nevertheless.
 */
export function isBackupName(path: string): boolean {
  const name = basename(path);
  if (manifest.test(name)) return backupWord.test(name);
  return manifestAndMore.test(name) || backupEnding.test(name);
}
