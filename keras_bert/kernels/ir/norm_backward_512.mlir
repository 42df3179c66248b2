module {
  tt.func public @norm_backward(%d_out: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %z: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %means: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %slopes: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %gamma: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %seed: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %d_x: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %d_y: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %sums: !tt.ptr<f32> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %rows = arith.constant $rows : i32
    %hidden = arith.constant $hidden : i32
    %threshold = arith.constant $threshold : i32
    %factor = arith.constant $factor : f32
    %cst = arith.constant dense<15> : tensor<512xi32>
    %cst_0 = arith.constant dense<569420461> : tensor<512xi32>
    %c1_i32 = arith.constant 1 : i32
    %c-749064809_i32 = arith.constant -749064809 : i32
    %c15_i32 = arith.constant 15 : i32
    %c569420461_i32 = arith.constant 569420461 : i32
    %c16_i32 = arith.constant 16 : i32
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<512x$float>
    %c2_i32 = arith.constant 2 : i32
    %c3_i32 = arith.constant 3 : i32
    %cst_2 = arith.constant dense<0.000000e+00> : tensor<512xf32>
    %0 = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32>
    %1 = tt.splat %hidden : i32 -> tensor<512xi32>
    %2 = arith.cmpi slt, %0, %1 : tensor<512xi32>
    %3 = tt.get_program_id x : i32
    %4 = tt.get_num_programs x : i32
    %5 = tt.splat %gamma : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
    %6 = tt.addptr %5, %0 : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
    %7 = tt.load %6, %2, %cst_2 : tensor<512x!tt.ptr<f32>>
    %8 = tt.load %seed : !tt.ptr<i32>
    %9 = arith.shrui %8, %c16_i32 : i32
    %10 = arith.xori %8, %9 : i32
    %11 = arith.muli %10, %c569420461_i32 : i32
    %12 = arith.shrui %11, %c15_i32 : i32
    %13 = arith.xori %11, %12 : i32
    %14 = arith.muli %13, %c-749064809_i32 : i32
    %15 = arith.shrui %14, %c15_i32 : i32
    %16 = arith.xori %14, %15 : i32
    %17 = tt.addptr %seed, %c1_i32 : !tt.ptr<i32>, i32
    %18 = tt.load %17 : !tt.ptr<i32>
    %19 = arith.addi %16, %18 : i32
    %20 = arith.shrui %19, %c16_i32 : i32
    %21 = arith.xori %19, %20 : i32
    %22 = arith.muli %21, %c569420461_i32 : i32
    %23 = arith.shrui %22, %c15_i32 : i32
    %24 = arith.xori %22, %23 : i32
    %25 = arith.muli %24, %c-749064809_i32 : i32
    %26 = arith.shrui %25, %c15_i32 : i32
    %27 = arith.xori %25, %26 : i32
    %28 = arith.addi %27, %c2_i32 : i32
    %29 = arith.shrui %28, %c16_i32 : i32
    %30 = arith.xori %28, %29 : i32
    %31 = arith.muli %30, %c569420461_i32 : i32
    %32 = arith.shrui %31, %c15_i32 : i32
    %33 = arith.xori %31, %32 : i32
    %34 = arith.muli %33, %c-749064809_i32 : i32
    %35 = arith.shrui %34, %c15_i32 : i32
    %36 = arith.xori %34, %35 : i32
    %37 = tt.splat %36 : i32 -> tensor<512xi32>
    %38 = arith.addi %0, %37 : tensor<512xi32>
    %39 = arith.muli %38, %cst_0 : tensor<512xi32>
    %40 = arith.shrui %39, %cst : tensor<512xi32>
    %41 = arith.xori %39, %40 : tensor<512xi32>
    %42:3 = scf.for %arg13 = %3 to %rows step %4 iter_args(%arg14 = %cst_2, %arg15 = %cst_2, %arg16 = %cst_2) -> (tensor<512xf32>, tensor<512xf32>, tensor<512xf32>)  : i32 {
      %53 = arith.extsi %arg13 : i32 to i64
      %54 = arith.extsi %hidden : i32 to i64
      %55 = arith.muli %53, %54 : i64
      %56 = arith.extsi %0 : tensor<512xi32> to tensor<512xi64>
      %57 = tt.splat %55 : i64 -> tensor<512xi64>
      %58 = arith.addi %57, %56 : tensor<512xi64>
      %59 = tt.splat %d_out : !tt.ptr<$float> -> tensor<512x!tt.ptr<$float>>
      %60 = tt.addptr %59, %58 : tensor<512x!tt.ptr<$float>>, tensor<512xi64>
      %61 = tt.load %60, %2, %cst_1 : tensor<512x!tt.ptr<$float>>
      %62 = arith.extf %61 : tensor<512x$float> to tensor<512xf32>
      %63 = tt.splat %z : !tt.ptr<$float> -> tensor<512x!tt.ptr<$float>>
      %64 = tt.addptr %63, %58 : tensor<512x!tt.ptr<$float>>, tensor<512xi64>
      %65 = tt.load %64, %2, %cst_1 : tensor<512x!tt.ptr<$float>>
      %66 = arith.extf %65 : tensor<512x$float> to tensor<512xf32>
      %67 = tt.addptr %slopes, %arg13 : !tt.ptr<f32>, i32
      %68 = tt.load %67 : !tt.ptr<f32>
      %69 = tt.addptr %means, %arg13 : !tt.ptr<f32>, i32
      %70 = tt.load %69 : !tt.ptr<f32>
      %71 = tt.splat %70 : f32 -> tensor<512xf32>
      %72 = arith.subf %66, %71 : tensor<512xf32>
      %73 = tt.splat %68 : f32 -> tensor<512xf32>
      %74 = arith.mulf %72, %73 : tensor<512xf32>
      %75 = arith.select %2, %74, %cst_2 : tensor<512xi1>, tensor<512xf32>
      %76 = arith.mulf %62, %75 : tensor<512xf32>
      %77 = arith.addf %arg14, %76 : tensor<512xf32>
      %78 = arith.addf %arg15, %62 : tensor<512xf32>
      %79 = arith.mulf %62, %7 : tensor<512xf32>
      %80 = "tt.reduce"(%79) <{axis = 0 : i32}> ({
      ^bb0(%arg17: f32, %arg18: f32):
        %122 = arith.addf %arg17, %arg18 : f32
        tt.reduce.return %122 : f32
      }) : (tensor<512xf32>) -> f32
      %81 = arith.sitofp %hidden : i32 to f32
      %82 = arith.divf %80, %81 : f32
      %83 = tt.splat %82 : f32 -> tensor<512xf32>
      %84 = arith.subf %79, %83 : tensor<512xf32>
      %85 = arith.mulf %79, %75 : tensor<512xf32>
      %86 = "tt.reduce"(%85) <{axis = 0 : i32}> ({
      ^bb0(%arg17: f32, %arg18: f32):
        %122 = arith.addf %arg17, %arg18 : f32
        tt.reduce.return %122 : f32
      }) : (tensor<512xf32>) -> f32
      %87 = arith.divf %86, %81 : f32
      %88 = tt.splat %87 : f32 -> tensor<512xf32>
      %89 = arith.mulf %75, %88 : tensor<512xf32>
      %90 = arith.subf %84, %89 : tensor<512xf32>
      %91 = arith.mulf %90, %73 : tensor<512xf32>
      %92 = tt.splat %d_x : !tt.ptr<$float> -> tensor<512x!tt.ptr<$float>>
      %93 = tt.addptr %92, %58 : tensor<512x!tt.ptr<$float>>, tensor<512xi64>
      %94 = arith.truncf %91 : tensor<512xf32> to tensor<512x$float>
      tt.store %93, %94, %2 : tensor<512x!tt.ptr<$float>>
      %95 = arith.addi %27, %c1_i32 : i32
      %96 = arith.shrui %95, %c16_i32 : i32
      %97 = arith.xori %95, %96 : i32
      %98 = arith.muli %97, %c569420461_i32 : i32
      %99 = arith.shrui %98, %c15_i32 : i32
      %100 = arith.xori %98, %99 : i32
      %101 = arith.muli %100, %c-749064809_i32 : i32
      %102 = arith.shrui %101, %c15_i32 : i32
      %103 = arith.xori %101, %102 : i32
      %104 = arith.addi %arg13, %103 : i32
      %105 = arith.muli %104, %c569420461_i32 : i32
      %106 = arith.shrui %105, %c15_i32 : i32
      %107 = arith.xori %105, %106 : i32
      %108 = arith.ori %107, %c1_i32 : i32
      %109 = tt.splat %108 : i32 -> tensor<512xi32>
      %110 = arith.muli %109, %41 : tensor<512xi32>
      %111 = tt.splat %threshold : i32 -> tensor<512xi32>
      %112 = arith.cmpi uge, %110, %111 : tensor<512xi32>
      %113 = tt.splat %factor : f32 -> tensor<512xf32>
      %114 = arith.mulf %91, %113 : tensor<512xf32>
      %115 = arith.select %112, %114, %cst_2 : tensor<512xi1>, tensor<512xf32>
      %116 = arith.truncf %115 : tensor<512xf32> to tensor<512x$float>
      %117 = tt.splat %d_y : !tt.ptr<$float> -> tensor<512x!tt.ptr<$float>>
      %118 = tt.addptr %117, %58 : tensor<512x!tt.ptr<$float>>, tensor<512xi64>
      tt.store %118, %116, %2 : tensor<512x!tt.ptr<$float>>
      %119 = arith.extf %116 : tensor<512x$float> to tensor<512xf32>
      %120 = arith.select %2, %119, %cst_2 : tensor<512xi1>, tensor<512xf32>
      %121 = arith.addf %arg16, %120 : tensor<512xf32>
      scf.yield %77, %78, %121 : tensor<512xf32>, tensor<512xf32>, tensor<512xf32>
    }
    %43 = arith.muli %3, %c3_i32 : i32
    %44 = arith.muli %43, %hidden : i32
    %45 = tt.splat %44 : i32 -> tensor<512xi32>
    %46 = arith.addi %45, %0 : tensor<512xi32>
    %47 = tt.splat %sums : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
    %48 = tt.addptr %47, %46 : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
    tt.store %48, %42#0, %2 : tensor<512x!tt.ptr<f32>>
    %49 = tt.addptr %48, %1 : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
    tt.store %49, %42#1, %2 : tensor<512x!tt.ptr<f32>>
    %50 = arith.muli %hidden, %c2_i32 : i32
    %51 = tt.splat %50 : i32 -> tensor<512xi32>
    %52 = tt.addptr %48, %51 : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
    tt.store %52, %42#2, %2 : tensor<512x!tt.ptr<f32>>
    tt.return
  }
}
