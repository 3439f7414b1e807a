// Rules beyond the formatter and the type checker, such as unused names, loose comparisons and long functions.

export default [
  {
    languageOptions: { ecmaVersion: 2022, sourceType: 'module' },
    rules: {
      eqeqeq: 'error',
      'max-len': ['error', { code: 130 }],
      'max-lines': ['error', 600],
      'max-lines-per-function': ['error', 70],
      'no-unused-vars': 'error',
      'no-var': 'error',
      'prefer-const': 'error',
    },
  },
  { files: ['test/**'], rules: { 'max-lines-per-function': 'off' } },
];
