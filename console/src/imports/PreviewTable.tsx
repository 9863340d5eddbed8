/** The first documents that an import would write, and the records that it would refuse. */

import { textOf } from "../pages/collections/documents/values";
import { Icon } from "../ui/Icon";
import { Table } from "../ui/Listing";
import { LineErrors } from "./ImportResult";
import type { Preview } from "./usePreview";

const MAX_ROWS = 8;
const MAX_COLUMNS = 50;

interface PreviewProps {
  readonly preview: Preview;
  readonly noun: "Line" | "Row";
}

export function PreviewTable({ preview, noun }: PreviewProps) {
  const { documents, errors, failed } = preview;
  const names = new Set(documents.flatMap(({ document }) => Object.keys(document)));
  const columns = [...names].slice(0, MAX_COLUMNS);
  return (
    <section aria-label="Preview" className="import-section">
      <div className="section-head">
        <h3>Preview</h3>
        <span className={failed > 0 ? "badge warn number" : "badge good number"} role="status">
          {verdict(preview)}
        </span>
      </div>
      {errors.length > 0 && (
        <div className="notice warn">
          <Icon name="alert" />
          <LineErrors errors={errors} noun={noun} />
        </div>
      )}
      {documents.length > 0 && (
        <div className="import-table">
          <Table heads={[noun, ...columns]} numbers={[noun]}>
            {documents.slice(0, MAX_ROWS).map(({ line, document }) => (
              <tr key={line}>
                <td className="soft number">{line}</td>
                {columns.map((column) => (
                  <td key={column} className="mono cut import-values">
                    {column in document && textOf(document[column])}
                  </td>
                ))}
              </tr>
            ))}
          </Table>
        </div>
      )}
    </section>
  );
}

/** Says how the first records fared. */
function verdict({ checked, failed, rows }: Preview): string {
  const all = rows?.toLocaleString("en");
  if (rows !== undefined && checked === 0)
    return `${all} rows; the file is too large for a preview`;
  if (checked === rows && failed === 0) return `All ${all} rows are valid`;
  const first = rows === undefined ? `first ${checked} records` : `first ${checked} of ${all} rows`;
  const those = checked === rows ? `${all} rows` : first;
  return failed > 0 ? `${failed} of the ${those} would be rejected` : `The ${those} are valid`;
}
