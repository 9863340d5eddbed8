/** The page of the guided start, which can be opened at any time. */

import { PageHead } from "../../shell/Shell";
import GetStarted from "./GetStarted";

export default function Start() {
  return (
    <>
      <PageHead title="Get started" />
      <div className="page-body">
        <GetStarted />
      </div>
    </>
  );
}
