// Entry point of the page. Path of one record: `crates/server` responds with JSON, and `lib/api.ts` parses it. Last, the
// pages draw the record.
import { render } from 'preact';
import 'uplot/dist/uPlot.min.css';
import './styles/tokens.css';
import './styles/base.css';
import './styles/shell.css';
import './styles/data.css';
import './styles/trace.css';
import './styles/explore.css';
import './styles/graph.css';
import './styles/agents.css';
import { App } from './app';
import { startTheme } from './lib/theme';

startTheme();
const root = document.getElementById('app');
if (root !== null) render(<App />, root);
