import { defineConfig } from 'vite';

// The built files are committed, and the server embeds them, so the same sources must give the same bytes. The names of
// the files depend only on their content, and the output does not depend on the machine or the time.
export default defineConfig({
  base: './',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    target: 'es2022',
    assetsInlineLimit: 0, // the page's content security policy forbids data: addresses
    modulePreload: { polyfill: false },
    cssCodeSplit: false,
    license: { fileName: 'licenses.txt' }, // licences of the bundled libraries
    rolldownOptions: {
      output: {
        entryFileNames: 'assets/app-[hash].js',
        chunkFileNames: 'assets/[name]-[hash].js',
        assetFileNames: 'assets/app-[hash][extname]',
      },
    },
  },
});
